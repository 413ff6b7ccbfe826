// Charts: the values at a point, by pointer, touch and keyboard. They come from the table beside the chart, whose rows are newest
// first. Every chart works without this file.
//
// @ts-check

const SVG = "http://www.w3.org/2000/svg";

/** @param {Element} area */
function read(area) {
  const table = /** @type {HTMLTableElement} */ (area.closest("figure")?.querySelector("table"));
  return { heads: [...table.tHead?.rows[0].cells ?? []], rows: [...table.tBodies[0].rows].reverse() };
}

/** Make the chart a slider over its points for keyboards and screen readers. @param {HTMLElement} area */
function prepare(area) {
  const name = area.closest("figure")?.id.replace("chart-", "");
  const last = read(area).rows.length - 1;
  area.tabIndex = 0;
  area.setAttribute("role", "slider");
  area.setAttribute("aria-labelledby", `${name}-title`);
  area.setAttribute("aria-describedby", `${name}-text`);
  area.setAttribute("aria-valuemin", "0");
  area.setAttribute("aria-valuemax", String(last));
  setValue(area, Math.min(last, Number(area.getAttribute("aria-valuenow") ?? last)));
  if (area === document.activeElement) show(area, Number(area.getAttribute("aria-valuenow")));
}

/** @param {Element} area @param {number} place */
function setValue(area, place) {
  const { heads, rows } = read(area);
  const [label, ...values] = [...rows[place].cells].map((cell) => cell.textContent);
  area.setAttribute("aria-valuenow", String(place));
  area.setAttribute("aria-valuetext", [label, ...values.map((value, at) => `${heads[at + 1].textContent} ${value}`)].join(", "));
}

/** Show the values at a place. @param {HTMLElement} area @param {number} place */
function show(area, place) {
  const { heads, rows } = read(area);
  const share = (place + 0.5) / rows.length;
  setValue(area, place);
  const svg = /** @type {SVGSVGElement} */ (area.querySelector("svg"));
  let cursor = svg.querySelector(".cursor");
  if (!cursor) svg.append((cursor = document.createElementNS(SVG, "line")));
  const x = String(share * svg.viewBox.baseVal.width);
  for (const [name, value] of Object.entries({ class: "cursor", x1: x, x2: x, y1: "0", y2: "100" })) cursor.setAttribute(name, value);
  let tip = /** @type {HTMLElement | null} */ (area.querySelector(".chart-tip"));
  if (!tip) {
    tip = document.createElement("div");
    tip.className = "chart-tip";
    tip.setAttribute("aria-hidden", "true");
    area.append(tip);
  }
  const title = document.createElement("b");
  title.textContent = rows[place].cells[0].textContent;
  const lines = heads.slice(1).map((head, at) => {
    const line = document.createElement("span");
    const name = document.createElement("span");
    name.className = "key";
    name.dataset.series = head.dataset.series;
    name.textContent = head.textContent;
    const value = document.createElement("strong");
    value.textContent = rows[place].cells[at + 1].textContent;
    line.append(name, value);
    return line;
  });
  tip.replaceChildren(title, ...lines);
  // Beside the cursor, within the chart.
  const width = area.clientWidth;
  const left = share * width;
  tip.style.left = `${Math.max(0, left > width / 2 ? left - tip.offsetWidth - 8 : Math.min(left + 8, width - tip.offsetWidth))}px`;
}

/** @param {Element | null} area */
function hide(area) {
  area?.querySelector(".cursor")?.remove();
  area?.querySelector(".chart-tip")?.remove();
}

const areaOf = (/** @type {Event} */ event) =>
  event.target instanceof Element ? /** @type {HTMLElement | null} */ (event.target.closest("[data-plot]")) : null;

/** @param {PointerEvent} event */
function point(event) {
  const area = areaOf(event);
  for (const other of document.querySelectorAll("[data-plot]:has(.cursor)")) if (other !== area) hide(other);
  if (!area) return;
  const { left, width } = area.getBoundingClientRect();
  const count = read(area).rows.length;
  show(area, Math.min(count - 1, Math.max(0, Math.floor(((event.clientX - left) / width) * count))));
}
document.addEventListener("pointermove", point);
document.addEventListener("pointerdown", point);
document.addEventListener("pointerout", (event) => {
  if (!event.relatedTarget && event.pointerType === "mouse") hide(areaOf(event)); // left the window
});
document.addEventListener("focusin", (event) => {
  const area = areaOf(event);
  if (area?.matches(":focus-visible")) show(area, Number(area.getAttribute("aria-valuenow")));
});
document.addEventListener("focusout", (event) => hide(areaOf(event)));

// Before app.js, in which the arrow keys change the page.
document.addEventListener(
  "keydown",
  (event) => {
    const area = areaOf(event);
    if (!area || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = Number(area.getAttribute("aria-valuemax"));
    const place = Number(area.getAttribute("aria-valuenow"));
    const next = { ArrowLeft: place - 1, ArrowDown: place - 1, ArrowRight: place + 1, ArrowUp: place + 1, Home: 0, End: last }[event.key];
    if (next === undefined && event.key !== "Escape") return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (next === undefined) hide(area);
    else show(area, Math.min(last, Math.max(0, next)));
  },
  true,
);

// A refresh keeps what this file adds, and with it the focus.
// @ts-ignore: htmx has no types here
globalThis.htmx?.registerExtension("charts", {
  htmx_before_morph_attr: (/** @type {Element} */ element) => !element.matches("[data-plot]"),
});

function prepareAll() {
  for (const area of document.querySelectorAll("[data-plot]")) prepare(/** @type {HTMLElement} */ (area));
}
document.addEventListener("htmx:after:swap", prepareAll);
prepareAll();
