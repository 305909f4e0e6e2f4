"""For tests of the page: what a mouse, a keyboard and a narrow screen can make of what is shown.

Nothing here depends on the fonts of a machine, so it needs no pictures to compare with. `misplaced` finds
what sticks out, is cut, is too small for a finger or lies below something else; `unreached` walks with the
Tab key; `outline` returns where the regions of the page are and which colours they have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from playwright.sync_api import Page

# What can be used now: everything in the top dialog, or else everything that is not inert. A group of radio
# buttons is one stop of the Tab key, and so is a row of tabs; the arrow keys move in it.
_CONTROLS = """
const top = [...document.querySelectorAll('dialog:modal')].at(-1) ?? document.body;
const selector = 'a[href], button, input, select, textarea, summary, [tabindex="0"]';
const isShown = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0
  && !one.closest('[inert], .unseen');
const controls = [...top.querySelectorAll(selector)].filter((one) => !one.disabled && isShown(one));
const nameOf = (one) => `${one.localName}${one.className && typeof one.className === 'string'
  ? '.' + one.className.split(' ').join('.') : ''} "${(one.getAttribute('aria-label') || one.innerText
  || one.getAttribute('name') || '').trim().slice(0, 40)}"`;
// Returns what a control lies below, if that covers its middle and all its corners.
const lies = (one, over) => { const box = one.getBoundingClientRect();
  const [left, right] = [Math.max(box.left, 0) + 3, Math.min(box.right, innerWidth) - 3];
  const [above, below] = [Math.max(box.top, 0) + 3, Math.min(box.bottom, innerHeight) - 3];
  const middle = [(left + right) / 2, (above + below) / 2];
  const hits = [[left, above], [right, above], [left, below], [right, below], middle]
    .map(([x, y]) => document.elementFromPoint(x, y));
  const isOther = (hit) => hit && !one.contains(hit) && !hit.contains(one) && !(over && hit.closest(over));
  return hits.every(isOther) ? hits[0] : null; };
"""
_MISPLACED = f"""(over) => {{ {_CONTROLS}
const found = [];
const width = document.documentElement.clientWidth;
const scrolls = (one) => /auto|scroll/.test(getComputedStyle(one).overflowX);
const isScrolled = (one) => {{ for (let at = one.parentElement; at && at !== top; at = at.parentElement)
  if (scrolls(at) && at.scrollWidth > at.clientWidth) return true; return false; }};
if (document.documentElement.scrollWidth > width) found.push('the page is wider than the screen');
for (const one of top.querySelectorAll('*')) {{
  if (!isShown(one) || one.closest('svg')) continue;
  const box = one.getBoundingClientRect();
  if ((box.right > width + 1 || box.left < -1) && !isScrolled(one)) found.push(`${{nameOf(one)}} sticks out`);
  const style = getComputedStyle(one);
  const isCut = style.overflowX === 'hidden' && style.textOverflow !== 'ellipsis'
    && one.scrollWidth > one.clientWidth + 1;
  if (isCut && one.innerText) found.push(`${{nameOf(one)}} is cut`);
}}
for (const one of controls) {{
  one.scrollIntoView({{ block: 'nearest', inline: 'nearest' }});
  const target = (one.matches('[type=checkbox], [type=radio]') && one.closest('label')) || one;
  const box = target.getBoundingClientRect();
  const isInText = style => style.display === 'inline';
  if ((box.width < 24 || box.height < 24) && !isInText(getComputedStyle(one)))
    found.push(`${{nameOf(one)}} is only ${{box.width.toFixed()}} by ${{box.height.toFixed()}}`);
  const hit = lies(one, over);
  if (hit) found.push(`${{nameOf(one)}} lies below ${{nameOf(hit)}}`);
}}
return found; }}"""
_BEGIN = f"""() => {{ {_CONTROLS}
window.controls = controls.filter((one) => !(one.getAttribute('role') === 'tab' && one.tabIndex < 0));
return window.controls.map(nameOf); }}"""
_FOCUS = f"""(over) => {{ {_CONTROLS}
const one = document.activeElement;
if (!one || one === document.body || one === document.documentElement) return null;
const isMarked = (at) => {{ const style = getComputedStyle(at);
  return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0; }};
const group = one.type === 'radio' ? window.controls.filter((at) => at.name === one.name) : [one];
const hit = lies(one, over);
return {{ at: group.map((at) => window.controls.indexOf(at)), name: nameOf(one), isInside: top.contains(one),
  isMarked: isMarked(one) || (one.id === 'composer' && isMarked(one.closest('form'))),
  below: hit && nameOf(hit) }}; }}"""
_OUTLINE = """(regions) => Object.fromEntries(regions.flatMap((name) => {
  const isShown = (at) => at.checkVisibility({ visibilityProperty: true });
  const one = [...document.querySelectorAll(name)].find(isShown);
  if (!one) return [];
  const { x, y, width, height } = one.getBoundingClientRect();
  const { color, backgroundColor, fontSize } = getComputedStyle(one);
  const box = [x, y, width, height].map(Math.round);
  return [[name, { box, colours: [color, backgroundColor], fontSize }]];
}))"""

_ROUNDS = 3


def misplaced(page: Page, *, over: str = "") -> list[str]:
    """Return what somebody with a mouse or a finger cannot read or reach on the screen.

    Args:
        over: What may lie above the rest, such as an open menu.
    """
    found: list[str] = page.evaluate(_MISPLACED, over)
    return found


def unreached(page: Page, *, over: str = "") -> list[str]:
    """Press Tab until all controls had the focus; return what is not reached, or not seen then.

    Args:
        over: What may lie above the rest, such as an open menu.
    """
    controls: list[str] = page.evaluate(_BEGIN)
    reached: set[int] = set()
    problems: dict[str, None] = {}
    lost = 0
    for _ in range(2 * len(controls) + 5):
        page.keyboard.press("Tab")
        focus: dict[str, Any] | None = page.evaluate(_FOCUS, over)
        if focus is None:
            lost += 1  # once around: the browser's own controls are between the last and the first
            continue
        reached |= set(focus["at"])
        if not focus["isInside"]:
            problems[f"the focus leaves the dialog for {focus['name']}"] = None
        if not focus["isMarked"]:
            problems[f"{focus['name']} has the focus, and nothing shows it"] = None
        if focus["below"]:
            problems[f"{focus['name']} has the focus below {focus['below']}"] = None
        if len(reached - {-1}) == len(controls):
            break
    there: list[bool] = page.evaluate("() => window.controls.map((one) => one.isConnected)")
    missing = [name for at, name in enumerate(controls) if there[at] and at not in reached]
    if lost > _ROUNDS:
        problems["the focus is lost again and again"] = None
    return [*(f"{name} is never reached" for name in missing), *problems]


def outline(page: Page, regions: Iterable[str]) -> dict[str, Any]:
    """Return the boxes, colours and font sizes of those regions that are on the screen."""
    found: dict[str, Any] = page.evaluate(_OUTLINE, list(regions))
    return found
