import { render } from "preact";
import { Page } from "./page";
import { applyTheme } from "./theme";
import { chooseLanguage, keepLanguage, language } from "./words";

const root = document.getElementById("page");

function draw(): void {
  const speak = (code: string): void => {
    keepLanguage(code);
    draw();
  };
  if (root !== null) render(<Page key={language} speak={speak} />, root);
}

chooseLanguage();
applyTheme();
draw();
