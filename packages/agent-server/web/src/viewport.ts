// The part of the page that is seen: on some phones the keyboard covers the page, and does not make it smaller.

/** Keep the page as high as what is seen of it. Where the browser does that itself, nothing changes. */
export function fitToKeyboard(): void {
  const seen = window.visualViewport;
  if (seen === null) return;
  const { style } = document.documentElement;
  const fit = (): void => {
    const height = Math.round(seen.height * seen.scale); // whoever zooms in wants to see less, not a smaller page
    if (height < window.innerHeight - 1) {
      style.setProperty("--seen", `${height}px`);
      window.scrollTo(0, 0); // the browser may have pushed the page up
    } else style.removeProperty("--seen");
  };
  seen.addEventListener("resize", fit);
  fit();
}
