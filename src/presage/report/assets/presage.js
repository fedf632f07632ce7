// Keeps a page up to date. The server renders every section; here new sections are put into the page by changing
// only what differs, so that scrolling, focus, open details and typed text stay as they are.

const main = () => document.getElementById("main");
const connection = document.getElementById("connection");

// -- changing a page in place ------------------------------------------------------------------------------------------

const KEPT = { DETAILS: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };

const keyOf = (node) => node.dataset?.key ?? null;

function sameKind(one, other) {
  return one.nodeName === other.nodeName && (one.id || "") === (other.id || "") && keyOf(one) === keyOf(other);
}

function changeAttributes(from, to) {
  const kept = KEPT[from.nodeName] ?? [];
  for (const { name } of [...from.attributes])
    if (!to.hasAttribute(name) && !kept.includes(name)) from.removeAttribute(name);
  for (const { name, value } of [...to.attributes])
    if (from.getAttribute(name) !== value && !kept.includes(name)) from.setAttribute(name, value);
}

function change(from, to) {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue;
    return;
  }
  changeAttributes(from, to);
  changeChildren(from, [...to.childNodes]);
}

// Rows of tables and nodes of trees have keys: those that are still wanted are never moved, so that they keep the focus.
function changeChildren(from, wanted) {
  const keys = new Set(wanted.map(keyOf).filter(Boolean));
  const known = new Set([...from.childNodes].map(keyOf).filter(Boolean));
  for (const child of [...from.childNodes]) if (keyOf(child) && !keys.has(keyOf(child))) child.remove();
  wanted.forEach((child, at) => {
    const there = from.childNodes[at];
    if (there && sameKind(there, child)) change(there, child);
    else if (known.has(keyOf(child)) || !there || keyOf(child)) {
      const same = known.has(keyOf(child)) && [...from.childNodes].find((each) => keyOf(each) === keyOf(child));
      from.insertBefore(same || document.importNode(child, true), there ?? null);
      if (same) change(same, child);
    } else there.replaceWith(document.importNode(child, true));
  });
  while (from.childNodes.length > wanted.length) from.lastChild.remove();
}

const parsed = (text) => new DOMParser().parseFromString(text, "text/html");

// -- news of the server ------------------------------------------------------------------------------------------------

let source = null;

function say(text) {
  if (connection && connection.textContent !== text) connection.textContent = text;
}

function connect() {
  disconnect();
  const stream = main()?.dataset.stream;
  if (!stream || document.hidden) return;
  source = new EventSource(stream);
  source.addEventListener("open", () => say("Live"));
  source.addEventListener("error", () => say("The connection is lost; trying again"));
  source.addEventListener("section", (event) => {
    const { id, html } = JSON.parse(event.data);
    const fresh = parsed(html).body.firstElementChild;
    const there = document.getElementById(id);
    if (there && fresh) change(there, fresh);
    else if (fresh) main().append(document.importNode(fresh, true));
  });
  source.addEventListener("gone", () => { say("This run is not there any more"); disconnect(); });
}

function disconnect() {
  source?.close();
  source = null;
}

// A browser has few connections for each server: a page that nobody sees gives up its own.
document.addEventListener("visibilitychange", () => (document.hidden ? disconnect() : connect()));
addEventListener("pagehide", disconnect);
addEventListener("pageshow", connect);

// -- the same page with other settings ---------------------------------------------------------------------------------

async function go(address, push) {
  const url = new URL(address, location.href);
  const answer = await fetch(url);
  if (!answer.ok) return location.assign(url);
  const fresh = parsed(await answer.text());
  document.title = fresh.title;
  change(main(), fresh.getElementById("main"));
  if (push) history.pushState(null, "", url);
  connect();
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-soft]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  event.preventDefault();
  go(link.href, true);
});

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-soft]")) return;
  event.preventDefault();
  go(`${event.target.action}?${new URLSearchParams(new FormData(event.target))}`, true);
});

document.addEventListener("change", (event) => {
  if (event.target.matches("form[data-soft] select")) event.target.form.requestSubmit();
});

addEventListener("popstate", () => go(location.href, false));

// -- the tree with the arrow keys --------------------------------------------------------------------------------------

document.addEventListener("keydown", (event) => {
  const link = event.target.closest?.("ul.tree a");
  if (!link || event.altKey || event.ctrlKey || event.metaKey) return;
  const all = [...link.closest("ul.tree").querySelectorAll("a")];
  const item = link.closest("li");
  const to = {
    ArrowDown: () => all[all.indexOf(link) + 1],
    ArrowUp: () => all[all.indexOf(link) - 1],
    ArrowRight: () => item.querySelector("ul a"),
    ArrowLeft: () => item.parentElement.closest("li")?.querySelector("a"),
    Home: () => all[0],
    End: () => all.at(-1),
  }[event.key]?.();
  if (to) { event.preventDefault(); to.focus(); }
});

// -- time that passes while nothing happens ----------------------------------------------------------------------------

function duration(seconds) {
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
}

const seen = new WeakMap();

setInterval(() => {
  if (document.hidden) return;
  for (const each of document.querySelectorAll("[data-elapsed]")) {
    const told = each.dataset.elapsed;
    if (seen.get(each)?.told !== told) seen.set(each, { told, at: performance.now() });
    each.textContent = duration(Number(told) + (performance.now() - seen.get(each).at) / 1000);
  }
}, 1000);
