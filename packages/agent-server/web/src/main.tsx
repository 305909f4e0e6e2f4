import { render } from "preact";
import { Page } from "./page";
import { applyTheme } from "./theme";
import { readInAddress, Reader } from "./share";
import { fitToKeyboard } from "./viewport";
import { chooseLanguage, keepLanguage, language } from "./words";

const root = document.getElementById("page");

function draw(): void {
  const speak = (code: string): void => {
    keepLanguage(code);
    draw();
  };
  const shared = readInAddress();
  if (root !== null) render(shared === undefined ? <Page key={language} speak={speak} /> : <Reader session={shared} />, root);
}

chooseLanguage();
applyTheme();
fitToKeyboard();
draw();
