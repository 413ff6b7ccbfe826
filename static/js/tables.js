// Data tables and the tickets of the inbox: the selection, the pane beside a table, and menus that stay open while their
// table is replaced. Every table works without this file.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const BOXES = ":is(.data-table tbody, [data-ticket] > header) input[type=checkbox]";
const boxOf = (row) => row && $(BOXES, row);
const focusedRow = () => document.activeElement?.closest(".data-table tbody tr");
const focusedItem = () => focusedRow() ?? document.activeElement?.closest("[data-ticket]");

// Selection --------------------------------------------------------------------------------------

// The checkbox that was changed last: the other end of a range.
let anchor = null;

function showSelection() {
  const all = $$(BOXES);
  const count = all.filter((box) => box.checked).length;
  const label = $("[data-count-selected]");
  if (label) label.textContent = `${count} selected`;
  const every = $("[data-check-all]");
  if (!every) return;
  every.checked = count > 0 && count === all.length;
  every.indeterminate = count > 0 && count < all.length;
}

function selectRange(box) {
  const all = $$(BOXES);
  const ends = [all.indexOf(anchor), all.indexOf(box)].sort((a, b) => a - b);
  if (ends[0] < 0) return;
  for (const each of all.slice(ends[0], ends[1] + 1)) each.checked = box.checked;
}

document.addEventListener("click", (event) => {
  if (!event.target.matches(BOXES)) return;
  if (event.shiftKey) selectRange(event.target);
  anchor = event.target;
  showSelection();
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-check-all]")) {
    for (const box of $$(BOXES)) box.checked = event.target.checked;
  }
  if (event.target.matches(`[data-check-all], ${BOXES}`)) showSelection();
});
document.addEventListener("reset", (event) => {
  if (event.target.matches(".table-form")) setTimeout(showSelection); // after the fields are reset
});
document.addEventListener("htmx:after:swap", showSelection);
showSelection(); // the browser keeps checkboxes when it reloads a page

// On a phone, the tree of namespaces is closed, so that the entries come first.
function closeTree() {
  if (matchMedia("(width < 700px)").matches) $(".keytree details")?.removeAttribute("open");
}
document.addEventListener("htmx:after:swap", closeTree);
closeTree();

// Pane: shows the row that has the focus, and the address names it as `open` -----------------------

const WIDE = matchMedia("(width >= 1280px)");
const tableOf = (element) => element?.closest(".data-table[data-pane]");
const linkOf = (row) => row && $("[data-row]", row); // without a page of its own, what shows its details
const paneOf = (table) => table && $(table.dataset.pane);
const isOpen = (pane) => Boolean(pane?.firstElementChild && pane.offsetParent);
const rowOfPane = () => $(".data-table[data-pane] tr[aria-current]");

function markRow(row) {
  rowOfPane()?.removeAttribute("aria-current");
  row?.setAttribute("aria-current", "true");
}

function addressWith(open) {
  const url = new URL(location.href);
  if (open) url.searchParams.set("open", open);
  else url.searchParams.delete("open");
  return url.pathname + url.search;
}

function fillPane(link) {
  markRow(link.closest("tr"));
  const pane = paneOf(tableOf(link)); // its attributes say how to swap
  pane.dataset.shows = boxOf(link.closest("tr"))?.value; // the entry and its version
  htmx.ajax("GET", link.href, { source: pane, target: pane });
}

function openPane(link) {
  if (!tableOf(link) || !WIDE.matches) return false;
  if (link.closest("tr") === rowOfPane()) return true;
  const address = addressWith(link.dataset.open);
  // Back closes the pane, however many rows it has shown.
  if (rowOfPane() || isOpen(paneOf(tableOf(link)))) history.replaceState(history.state, "", address);
  else {
    history.replaceState({ htmx: true }, "", location.href); // without it, htmx leaves Back to this address alone
    history.pushState({ htmx: true, opensPane: true }, "", address);
  }
  fillPane(link);
  return true;
}

function moveFocus(link) {
  document.activeElement.blur(); // after Back and Forward, the browser resets a focus that did not move
  link?.focus();
}

function hidePane(pane) {
  htmx.trigger(pane, "htmx:abort"); // it may load
  pane.replaceChildren();
  moveFocus(linkOf(rowOfPane()));
  markRow(null);
}

function closePane() {
  const pane = paneOf($(".data-table[data-pane]"));
  if (!isOpen(pane)) return false;
  if (history.state?.opensPane) history.back();
  else {
    history.replaceState(history.state, "", addressWith(""));
    hidePane(pane);
  }
  return true;
}

// htmx loads the page again after Back and Forward, which is not needed if only the pane differs.
let listAddress = "";
document.addEventListener("htmx:before:history:restore", (event) => {
  const pane = paneOf($(".data-table[data-pane]"));
  if (!pane || addressWith("") !== listAddress) return;
  const link = linkInAddress();
  if (link && WIDE.matches) {
    fillPane(link);
    moveFocus(link);
  } else if (new URLSearchParams(location.search).has("open")) return;
  else hidePane(pane);
  event.preventDefault();
});

document.addEventListener("click", (event) => {
  if (event.target.closest("[data-close-pane]")) closePane();
  const link = event.target.closest(".data-table a[data-row]");
  // Enter, and a second click, open the page.
  if (!link || !event.detail || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.closest("tr") !== rowOfPane() && openPane(link)) event.preventDefault();
});

let following = 0;
document.addEventListener("focusin", (event) => {
  if (!event.target.matches(".data-table a[data-row]") || !isOpen(paneOf(tableOf(event.target)))) return;
  clearTimeout(following);
  following = setTimeout(() => document.activeElement === event.target && openPane(event.target), 80);
});

function linkInAddress() {
  const address = new URLSearchParams(location.search).get("open");
  return address && $(`.data-table a[data-open="${CSS.escape(address)}"]`);
}

function markOpenRow() {
  listAddress = addressWith("");
  const link = linkInAddress();
  if (!link || rowOfPane()) return;
  const pane = paneOf(tableOf(link));
  const shows = boxOf(link.closest("tr"))?.value;
  pane.dataset.shows ??= shows;
  if (isOpen(pane) && pane.dataset.shows !== shows) fillPane(link); // an edit replaced the row
  else markRow(link.closest("tr"));
}
document.addEventListener("htmx:after:swap", markOpenRow);
markOpenRow();

// Cells: members of values that are edited in place -----------------------------------------------

const focusedCell = () => {
  const cell = document.activeElement?.closest(".data-table .cell");
  return cell && !$("form", cell) ? cell : null;
};
const columnOf = (cell) => cell.closest("table").tHead.rows[0].cells[cell.cellIndex].dataset.column;

// Fetch the row again, with a form in the cell of `member` or without.
function fetchRow(row, member) {
  const titles = $$("[data-column]", row.closest("table").tHead);
  const url = new URL(row.dataset.cells, location.href);
  url.searchParams.set("columns", ["key", ...titles.map((title) => title.dataset.column)].join());
  url.searchParams.set("list_namespace", new URLSearchParams(location.search).get("namespace") ?? "");
  url.searchParams.set("back", location.pathname + location.search);
  if (member) url.searchParams.set("member", member);
  htmx.ajax("GET", url.href, { target: row, swap: "outerHTML" });
}

function focusCell(cell) {
  if (cell.matches(".cell")) cell.tabIndex = -1;
  cell.focus();
}

function editCell() {
  const cell = focusedCell();
  if (!cell) return false;
  fetchRow(cell.parentElement, columnOf(cell));
  return true;
}

function moveCell(direction) {
  const row = focusedRow();
  if (!row || $("form", row)) return false;
  const stops = [linkOf(row), ...$$(".cell", row)];
  const next = stops[stops.indexOf(focusedCell() ?? linkOf(row)) + direction];
  if (stops.length < 2) return false;
  if (next) focusCell(next);
  return true;
}

document.addEventListener("dblclick", (event) => {
  const cell = event.target.closest(".data-table .cell");
  if (!cell || $("form", cell)) return;
  focusCell(cell);
  editCell();
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-cancel-cell]")) fetchRow(event.target.closest("tr"));
});

// What is saved is shown at once, in place of the form. If the server refuses it, the row of its response contains the
// form again; without a response, this form is shown again.
document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const form = ctx.sourceElement;
  if (!form.matches?.(".cell-form")) return;
  const field = $("[data-typed]", form);
  const saved = document.createElement("span");
  saved.className = "saving";
  saved.textContent = field.selectedOptions?.[0]?.label ?? field.value;
  form.hidden = true;
  form.after(saved);
  focusCell(form.closest(".cell"));
});
document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
  const form = ctx.sourceElement;
  if (!form.matches?.(".cell-form") || !form.isConnected) return;
  form.nextElementSibling?.remove();
  form.hidden = false;
  $("[data-typed]", form).focus();
});

// A row is replaced when its form opens and closes: the focus goes into the form, then back to the cell.
let lastCell = null;
document.addEventListener("htmx:before:swap", () => {
  const cell = document.activeElement?.closest(".data-table .cell");
  if (!cell) return;
  const row = cell.parentElement;
  lastCell = { url: row.dataset.cells, index: cell.cellIndex, selected: boxOf(row)?.checked };
});
document.addEventListener(
  "htmx:after:swap",
  () => {
    const row = lastCell && $(`tr[data-cells="${CSS.escape(lastCell.url)}"]`);
    const cell = row?.cells[lastCell.index];
    if (row && boxOf(row)) boxOf(row).checked = lastCell.selected;
    lastCell = null;
    const field = cell && $("[data-typed]", cell);
    if (!cell || field === document.activeElement) return;
    focusCell(field ?? cell);
    field?.select?.();
  },
  true, // before app.js moves the focus to the row
);

// Keys -------------------------------------------------------------------------------------------

// Not from an action of the row: x goes to the next one then (app.js).
function toggleRow() {
  const box = boxOf(focusedItem());
  if (!box || document.activeElement.matches('[hx-target="#dialog"], [data-actions]')) return false;
  box.click();
  return true;
}

// The rows from the last one whose checkbox was changed to the one with the focus.
function toggleRange() {
  const box = boxOf(focusedItem());
  if (!box) return false;
  box.checked = true;
  selectRange(box);
  anchor = box;
  showSelection();
  return true;
}

function focusBar() {
  const button = $(".bulk-bar button");
  if (!button?.offsetParent) return false;
  button.focus();
  return true;
}

function clearSelection() {
  const box = $(`${BOXES}:checked`);
  box?.form.reset();
  return Boolean(box);
}

function move(direction) {
  const row = focusedRow();
  const all = row ? $$("tbody tr:has([data-row])", row.closest("table")) : [];
  const next = row && all[all.indexOf(row) + direction];
  const cell = next && focusedCell() && next.cells[focusedCell().cellIndex];
  const target = cell?.matches(".cell") ? cell : linkOf(next);
  if (target) focusCell(target);
  next?.scrollIntoView({ block: "nearest" });
  return Boolean(row);
}

const KEYS = {
  x: toggleRow,
  X: toggleRange,
  b: focusBar,
  " ": () => document.activeElement.matches(".data-table a[data-row]") && openPane(document.activeElement),
  ArrowDown: () => move(1),
  ArrowUp: () => move(-1),
  ArrowRight: () => moveCell(1),
  ArrowLeft: () => moveCell(-1),
  Enter: editCell,
  e: editCell,
  Escape: () => clearSelection() || closePane(),
};

let wentAt = 0;

// Before app.js, whose keys apply if a table does not use them.
document.addEventListener(
  "keydown",
  (event) => {
    const goes = Date.now() - wentAt < 1200; // the key after g names a page (app.js)
    wentAt = event.key === "g" ? Date.now() : 0;
    if (goes || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    if (event.key === "Escape" && event.target.matches?.("[data-typed]")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      fetchRow(event.target.closest("tr"));
      return;
    }
    if (event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if ($("dialog[open], [popover]:popover-open")) return;
    if (!KEYS[event.key]()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

// Menus ------------------------------------------------------------------------------------------

// The menu of filters is not replaced with the rows, so it closes when its filters are applied.
document.addEventListener("submit", (event) => {
  const menu = event.target.matches(".search-form") && $("[popover]:popover-open", event.target);
  if (!menu) return;
  menu.hidePopover();
  $(`[popovertarget="${menu.id}"]`).focus();
});

// A choice in the menu of columns replaces the table with its menu, which stays open for the next.
let menuId = "";
let controlId = "";
document.addEventListener("htmx:before:swap", () => {
  menuId = $("[data-keep-open]:popover-open")?.id ?? "";
  controlId = document.activeElement?.id ?? "";
});
document.addEventListener(
  "htmx:after:swap",
  () => {
    const menu = menuId && document.getElementById(menuId);
    menuId = "";
    if (!menu || menu.matches(":popover-open")) return;
    menu.showPopover();
    (document.getElementById(controlId) ?? $("input:not([type=hidden])", menu))?.focus();
  },
  true, // before app.js moves the focus to the table
);

// What had the focus before the menu opened was replaced with the table.
document.addEventListener(
  "toggle",
  ({ target, newState }) => {
    const lost = document.activeElement === document.body || target.contains(document.activeElement);
    if (newState === "closed" && target.matches("[data-keep-open]") && lost) $(`[popovertarget="${target.id}"]`)?.focus();
  },
  true, // it does not bubble
);
