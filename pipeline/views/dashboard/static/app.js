// The dashboard works without this file, but for figures. It draws them in the page's colours, follows keys,
// fetches the parts of a page that take long, and puts in place what is new.
"use strict";

const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const dark = matchMedia("(prefers-color-scheme: dark)");
const drawn = new Map(); // element → figure, to draw it again in other colours

// ---- figures

function coloured(figure) {
  const { data, layout } = structuredClone(figure);
  const axis = { gridcolor: css("--line"), linecolor: css("--muted"), zerolinecolor: css("--line"), tickcolor: css("--muted") };
  Object.assign(layout, { paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)" });
  layout.font = { ...layout.font, color: css("--ink") };
  layout.hoverlabel = { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } };
  for (const name of ["xaxis", "yaxis"]) if (layout[name]) layout[name] = { ...layout[name], ...axis };
  for (const note of layout.annotations || []) note.font = { ...note.font, color: note.text === "change point" ? css("--bad") : css("--muted") };
  for (const shape of layout.shapes || []) {
    if (shape.line && shape.line.dash) shape.line.color = css("--ink");
    else if (shape.type === "line") shape.line.color = css("--bad");
  }
  for (const trace of data) {
    if (trace.meta === "total") trace.line.color = css("--ink");
    else if (String(trace.meta).startsWith("--")) trace.line.color = css(trace.meta);
    else if (trace.type === "scatter" && trace.name !== "releases" && trace.meta !== "coloured" && !trace.stackgroup) {
      trace.line = { ...trace.line, color: css("--accent") };
      trace.marker = { ...trace.marker, color: css("--accent") };
    }
    if (trace.type === "icicle") {
      const marker = trace.marker;
      if (marker.colorscale) marker.colorscale[1][1] = dark.matches ? "#33404e" : "#eef1f4";
      if (Array.isArray(marker.colors) && typeof marker.colors[0] === "string" && dark.matches) {
        marker.colors = marker.colors.map((one) => (one === "#dfe5ec" ? "#33404e" : one));
      }
      marker.line.color = marker.line.color.map((one) => (one === "#ffffff" ? css("--card") : css("--ink")));
      trace.pathbar = { ...trace.pathbar, textfont: { color: css("--ink") } };
    }
  }
  return { data, layout };
}

function draw(element, figure) {
  drawn.set(element, figure);
  const { data, layout } = coloured(figure);
  element.querySelector(".wait")?.remove();
  layout.autosize = true;
  if (innerWidth < 700) {
    const flame = data[0].type === "icicle";
    layout.margin = { ...layout.margin, l: flame ? 2 : 48, r: flame ? 2 : 6 };
    if (flame) data[0].marker.showscale = false;
    else layout.annotations = (layout.annotations || []).filter((note) => note.text === "change point");
  }
  const wanted = { displayModeBar: false, responsive: true };
  return Plotly.react(element, data, layout, wanted).then(() => {
    element.dataset.drawn = "yes";
    if ("zoom" in element.dataset && !element.zooms) element.zooms = element.on("plotly_relayout", (event) => zoom(element, event));
  });
}

// What is dragged over is read anew, in windows that fit; a double click goes back.
function zoom(element, event) {
  const time = (text) => encodeURIComponent(`${String(text).replace(" ", "T").slice(0, 19)}Z`);
  const [start, end] = [event["xaxis.range[0]"], event["xaxis.range[1]"]];
  if (start) fetchFigure(element, `${element.dataset.figure}?start=${time(start)}&end=${time(end)}`);
  else if (event["xaxis.autorange"]) document.querySelector(`[data-target=${element.id}][aria-pressed=true]`).click();
}

async function fetchFigure(element, url) {
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  const wait = element.querySelector(".wait") || element.appendChild(document.createElement("span"));
  wait.className = "meta wait";
  if (!answer.ok) {
    if (drawn.delete(element)) Plotly.purge(element);
    wait.textContent = "";
    const { error } = await answer.json().catch(() => ({}));
    element.append(`Nothing to draw: ${error || `the answer was ${answer.status}`}`);
    element.dataset.drawn = "no";
    return;
  }
  await draw(element, await answer.json());
}

// Tables that are wider than the screen scroll, by keys too.
function reachable() {
  for (const one of document.querySelectorAll(".wide")) one.tabIndex = one.scrollWidth > one.clientWidth ? 0 : -1;
}

function drawInside(root) {
  reachable();
  for (const element of root.querySelectorAll(".figure")) {
    const block = element.querySelector('script[type="application/json"]');
    if (element.dataset.figure) fetchFigure(element, element.dataset.figure);
    else if (block) { const figure = JSON.parse(block.textContent); block.remove(); draw(element, figure); }
  }
}

addEventListener("resize", reachable);
dark.addEventListener("change", () => drawn.forEach((figure, element) => draw(element, figure)));

document.addEventListener("click", (event) => {
  const tab = event.target.closest("button[data-span]");
  if (!tab) return;
  for (const other of tab.parentElement.children) other.setAttribute("aria-pressed", String(other === tab));
  const element = document.getElementById(tab.dataset.target);
  fetchFigure(element, `${element.dataset.figure}?span=${encodeURIComponent(tab.dataset.span)}`);
});

// Frames whose name holds what is looked for stay as they are; all others fade.
document.addEventListener("input", (event) => {
  if (!("find" in event.target.dataset)) return;
  const words = event.target.value.trim().toLowerCase();
  drawn.forEach((figure, element) => {
    const trace = figure.data[0];
    if (trace.type !== "icicle") return;
    const hit = trace.customdata.map(([name]) => words && name.toLowerCase().includes(words));
    const line = { color: hit.map((one) => (one ? css("--amber") : css("--card"))), width: hit.map((one) => (one ? 3 : 1)) };
    if (words) Plotly.restyle(element, { "marker.line": [line] });
    else draw(element, figure);
  });
});

// ---- parts that take long

async function fetchPart(element) {
  const answer = await fetch(element.dataset.part);
  element.removeAttribute("aria-busy");
  if (!answer.ok) {
    element.textContent = `This part cannot be shown (${answer.status}).`;
    return;
  }
  const text = await answer.text();
  if (sources.get(element) === text || element.contains(document.activeElement)) return;
  sources.set(element, text);
  element.innerHTML = text;
  drawInside(element);
}

// ---- the list

const rows = () => [...document.querySelectorAll("table.list tbody tr")];
let at = -1;

function go(to) {
  const all = rows();
  if (!all.length) return;
  at = Math.max(0, Math.min(all.length - 1, to));
  all.forEach((row, index) => row.classList.toggle("at", index === at));
  all[at].querySelector("a").focus({ preventScroll: true });
  all[at].scrollIntoView({ block: "nearest" });
}

function count() {
  const label = document.getElementById("chosen");
  if (label) label.textContent = `${document.querySelectorAll("#list tbody input:checked").length} chosen:`;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input:not([type=checkbox]), select, textarea")) return;
  const row = rows()[at];
  if (event.key === "j") go(at + 1);
  else if (event.key === "k") go(at - 1);
  else if (event.key === "x" && row) { const box = row.querySelector("input"); if (box) { box.checked = !box.checked; count(); } }
  else if (event.key === "Enter" && row && event.target === document.body) location.href = row.dataset.href;
  else if (event.key === "/" && document.getElementById("search")) document.getElementById("search").focus();
  else return;
  event.preventDefault();
});

document.addEventListener("change", (event) => {
  if (event.target.id === "choose-all") for (const box of document.querySelectorAll("#list tbody input")) box.checked = event.target.checked;
  if (event.target.closest(".filters") && event.target.matches("select")) event.target.form.requestSubmit();
  count();
});

// Empty filters make long addresses. A fieldset is an element of its form, too, and would take its fields along.
document.addEventListener("submit", (event) => {
  if (!event.target.matches(".filters")) return;
  for (const field of event.target.querySelectorAll("input, select")) if (!field.value) field.disabled = true;
});

// ---- what is new

// The server says when the page is no longer the latest. The same page is then read again, and what differs put in
// its place: choices, the line one is at, and the focus stay.

const sources = new WeakMap(); // element → what the server sent, whatever became of it here

function remember(root) {
  for (const one of root.querySelectorAll("[data-live], #list tbody tr")) sources.set(one, one.outerHTML);
}

function follow() {
  if (!document.body.dataset.version) return;
  const stream = new EventSource("/stream"); // connects again by itself
  stream.addEventListener("changed", (event) => {
    const { version } = JSON.parse(event.data);
    if (String(version) !== document.body.dataset.version) renew();
  });
  stream.addEventListener("beat", () => document.querySelectorAll("[data-beats]").forEach(fetchPart));
  // After an answer that is no stream, such as a proxy's, a browser does not ask again.
  stream.addEventListener("error", () => { if (stream.readyState === EventSource.CLOSED) setTimeout(follow, 30000); });
  addEventListener("pagehide", () => stream.close());
}

async function renew() {
  const answer = await fetch(location.href).catch(() => null);
  if (!answer || !answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.body.dataset.version = page.body.dataset.version;
  for (const fresh of page.querySelectorAll("[data-live]")) {
    const now = document.getElementById(fresh.id);
    if (now && sources.get(now) !== fresh.outerHTML && !now.contains(document.activeElement)) now.replaceWith(fresh);
  }
  const [list, fresh] = [document, page].map((one) => one.getElementById("list"));
  if (list && fresh) merge(list, fresh);
  remember(document);
}

function merge(list, fresh) {
  const [body, other] = [list, fresh].map((one) => one.querySelector("tbody"));
  if (!body || !other) { list.replaceChildren(...fresh.childNodes); count(); return; }
  const known = new Map([...body.rows].map((row) => [row.dataset.href, row]));
  const wanted = [...other.rows].map((row) => merged(known.get(row.dataset.href), row));
  for (const row of [...body.rows]) if (!wanted.includes(row)) row.remove();
  let next = body.rows[0];
  for (const row of wanted) {
    if (row === next) next = next.nextElementSibling;
    else body.insertBefore(row, next || null);
  }
  at = rows().findIndex((row) => row.classList.contains("at"));
  count();
  const added = wanted.filter((row) => !known.has(row.dataset.href)).length;
  if (added) announce(`${added} new in the list`);
}

// The row that is there where it says the same, or else the fresh one in its place.
function merged(row, fresh) {
  if (!row || sources.get(row) === fresh.outerHTML) return row || fresh;
  const [box, other] = [row, fresh].map((one) => one.querySelector("input"));
  if (box && other) other.checked = box.checked;
  fresh.classList.toggle("at", row.classList.contains("at"));
  const focused = ["input", "a"].find((name) => row.querySelector(name) === document.activeElement);
  sources.set(fresh, fresh.outerHTML);
  row.replaceWith(fresh);
  if (focused) fresh.querySelector(focused).focus({ preventScroll: true });
  return fresh;
}

function announce(text) {
  const news = document.getElementById("news");
  news.textContent = text;
  setTimeout(() => { news.textContent = ""; }, 6000);
}

document.addEventListener("DOMContentLoaded", () => {
  // On a phone filters are folded, unless one is set.
  if (innerWidth < 760) document.querySelectorAll("details.narrow:not([data-used])").forEach((one) => { one.open = false; });
  drawInside(document);
  document.querySelectorAll("[data-part]").forEach(fetchPart);
  remember(document);
  follow();
});
