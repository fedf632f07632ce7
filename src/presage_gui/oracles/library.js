// What oracles are written with. An oracle looks at the tree of the page and returns the steps that are right now, the
// preferred one first; it remembers nothing, so that it knows what to do after any mistake that can be mended.
// Oracles are for labels and for scripted agents. No critic sees any of this.
window.presage = { oracles: {}, targets: [] };
(() => {
  const P = window.presage;
  const q = (s, at = document) => at.querySelector(s);
  const qa = (s, at = document) => [...at.querySelectorAll(s)];
  const words = (e) => (e.innerText ?? e.textContent ?? '').replace(/\s+/g, ' ').trim();
  const goal = () => { const said = core.getUtterance(); return said.utterance ?? said; };
  const quoted = (n = 0) => [...goal().matchAll(/"([^"]*)"/g)].map((m) => m[1])[n];
  const number = (s) => parseFloat(String(s).replace(/[^0-9.+-]/g, ''));
  const inside = (e) => e && e.closest('#sync-task-cover, #reward-display, #click-canvas');

  // The part of an element that is seen: not cut off by what scrolls, nor by the edge of the screen.
  const clipped = (e, box) => {
    let [l, t, r, b] = [box.left, box.top, box.right, box.bottom];
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement) {
      const style = getComputedStyle(p);
      if (/(auto|scroll|hidden)/.test(style.overflow + style.overflowX + style.overflowY)) {
        const c = p.getBoundingClientRect();
        [l, t, r, b] = [Math.max(l, c.left), Math.max(t, c.top), Math.min(r, c.right), Math.min(b, c.bottom)];
      }
    }
    [l, t, r, b] = [Math.max(l, 0), Math.max(t, 0), Math.min(r, P.width), Math.min(b, P.height)];
    return r - l > 1 && b - t > 1 ? [l, t, r, b] : null;
  };
  const boxes = (e) => [...e.getClientRects()].map((box) => clipped(e, box)).filter(Boolean);
  const hits = (e, x, y) => {
    const found = document.elementFromPoint(x, y);
    if (!found) return false;
    const label = found.closest('label');
    return found === e || e.contains(found) || (!!label && (label.control === e || e.contains(label)));
  };
  const shown = (e) => !!e && boxes(e).length > 0 && getComputedStyle(e).visibility !== 'hidden';

  const ROLES = [
    ['button, [type=button], [type=submit], .ui-button', 'button'], ['[type=checkbox]', 'checkbox'],
    ['[type=radio]', 'radio button'], ['textarea', 'text area'], ['select', 'drop-down list'], ['option', 'option'],
    ['input', 'text field'], ['a, .alink', 'link'], ['[role=tab]', 'tab'], ['.ui-menu-item, [role=menuitem]', 'menu item'],
    ['.ui-slider-handle', 'slider handle'], ['h3', 'section'], ['circle, rect, polygon, path, ellipse', 'shape'],
    ['li', 'item'], ['label', 'label'], ['td', 'cell'],
  ];
  const role = (e) => (ROLES.find(([s]) => e.matches(s)) ?? [0, 'element'])[1];
  const name = (e) => {
    if (e.dataset?.presageName) return e.dataset.presageName;
    if (e.matches('[type=checkbox], [type=radio]')) return words(e.labels?.[0] ?? e.parentElement);
    if (e.matches('input, textarea, select')) {
      const before = e.labels?.[0] ?? (e.previousElementSibling?.matches('label, span, div, th') ? e.previousElementSibling : null);
      return (before ? words(before).replace(/:$/, '') : '') || e.placeholder || '';
    }
    return words(e).slice(0, 48);
  };

  // Steps. Each is a plain object; `el` is what a click must hit.
  const step = (fields) => fields;
  const scroller = (e) => {
    for (let p = e.parentElement; p && p !== document.documentElement; p = p.parentElement) {
      if (p.scrollHeight > p.clientHeight + 2 && /(auto|scroll)/.test(getComputedStyle(p).overflowY)) return p;
    }
    return null;
  };
  const scroll = (area, dy, why) => {
    const box = boxes(area)[0];
    const most = dy > 0 ? area.scrollHeight - area.clientHeight - area.scrollTop : area.scrollTop;
    return step({ kind: 'scroll', el: area, dy: Math.sign(dy) * Math.max(10, Math.min(Math.abs(dy), most)), name: why ?? '', box, most });
  };
  const click = (e, called, more = {}) => {
    if (typeof e === 'string') e = q(e);
    if (!e) return null;
    const area = scroller(e);
    if (area) {
      const [own, frame] = [e.getBoundingClientRect(), area.getBoundingClientRect()];
      const middle = own.top + own.height / 2;
      const [top, bottom] = [Math.max(frame.top, 0), Math.min(frame.bottom, P.height)];
      if (middle < top + 3 || middle > bottom - 3) return scroll(area, Math.round(middle - (top + bottom) / 2), called ?? name(e));
    }
    return step({ kind: 'click', el: e, name: called ?? name(e), ...more });
  };
  const focused = (e) => document.activeElement === e;
  const allSelected = (e) => e.value.length > 0 && (e.selectionStart === null ? !!P.selected && P.selected[0] === e && P.selected[1] === e.value : e.selectionStart === 0 && e.selectionEnd === e.value.length);
  const fill = (e, value, called, same = (a, b) => a === b) => {
    if (typeof e === 'string') e = q(e);
    value = String(value);
    if (same(e.value, value)) return null;
    const field = called ?? name(e);
    if (!focused(e)) return click(e, field, { then: value });
    if (e.value === '' || allSelected(e)) return step({ kind: 'type', el: e, text: value, name: field });
    return step({ kind: 'key', keys: ['ctrl', 'a'], el: e, name: field });
  };
  const each = (...steps) => steps.flat(Infinity).filter(Boolean);
  const first = (...steps) => { for (const s of steps) { const made = typeof s === 'function' ? s() : s; if (made && (!Array.isArray(made) || made.length)) return made; } return null; };
  const byText = (s, t) => qa(s).find((e) => words(e) === t);
  const press = (...keys) => step({ kind: 'key', keys, name: '' });
  const wait = (why, seconds = 1) => step({ kind: 'wait', seconds, name: why ?? '' });
  const drag = (e, to, toBox, called, more = {}) => step({ kind: 'drag', el: e, to, toBox, name: called ?? name(e), ...more });
  const centre = (e) => { const b = e.getBoundingClientRect(); return [(b.left + b.right) / 2, (b.top + b.bottom) / 2]; };
  const rect = (e) => { const b = e.getBoundingClientRect(); return [b.left, b.top, b.right, b.bottom]; };
  // A click on a place rather than on an element: right within `radius` of it.
  const point = (x, y, radius, called, el) => step({ kind: 'click', place: [x, y], radius, name: called, el });

  // A place on the element that a click hits, as near to its middle as `spread` allows.
  const place = (e, u, v, spread) => {
    const all = boxes(e);
    all.sort((a, b) => (b[2] - b[0]) * (b[3] - b[1]) - (a[2] - a[0]) * (a[3] - a[1]));
    for (const [l, t, r, b] of all) {
      const [cx, cy, w, h] = [(l + r) / 2, (t + b) / 2, r - l, b - t];
      const tries = [[cx + (u - 0.5) * w * spread, cy + (v - 0.5) * h * spread], [cx, cy], [l + w / 4, cy], [r - w / 4, cy], [cx, t + h / 4], [cx, b - h / 4], [l + 3, t + 3]];
      for (const [x, y] of tries) if (hits(e, Math.round(x), Math.round(y))) return [Math.round(x), Math.round(y)];
    }
    return null;
  };

  const told = (s, u, v, spread, index) => {
    const out = { kind: s.kind, name: String(s.name ?? '').slice(0, 60), role: s.role ?? (s.el ? role(s.el) : ''), index };
    if (s.place) {
      out.at = s.place.map((c) => Math.round(c));
      out.boxes = [[s.place[0] - s.radius, s.place[1] - s.radius, s.place[0] + s.radius, s.place[1] + s.radius]];
    } else if (s.from) {
      out.at = s.from.map((c) => Math.round(c));
      out.boxes = [s.fromBox ?? [s.from[0] - 3, s.from[1] - 4, s.from[0] + 3, s.from[1] + 4]];
    } else if (s.el && s.kind !== 'key' && s.kind !== 'type') {
      out.at = place(s.el, u, v, spread);
      out.boxes = boxes(s.el);
      if (!out.at) return null;
    } else if (s.el) {
      out.boxes = boxes(s.el);
    }
    for (const key of ['text', 'keys', 'dy', 'dx', 'seconds', 'to', 'toBox', 'toName', 'most', 'then']) {
      if (s[key] !== undefined) out[key] = s[key];
    }
    if (out.to) out.to = out.to.map((c) => Math.round(c));
    return out;
  };

  document.addEventListener('keydown', (e) => { if (e.ctrlKey && e.key === 'a') P.selected = [e.target, e.target.value]; }, true);
  document.addEventListener('mousedown', () => { P.selected = null; }, true);

  P.next = (task, u, v, spread) => {
    if (WOB_DONE_GLOBAL) return { over: true, reward: WOB_RAW_REWARD_GLOBAL, steps: [] };
    const found = P.oracles[task]();
    const steps = (Array.isArray(found) ? found : [found]).filter(Boolean);
    P.targets = steps;
    return { over: false, reward: 0, steps: steps.map((s, i) => told(s, u, v, spread, i)).filter(Boolean) };
  };
  // Which of the right steps a click at this place is, or -1.
  P.hit = (x, y, kind = 'click') => P.targets.findIndex((s) => s.kind === kind && (
    s.place ? Math.hypot(x - s.place[0], y - s.place[1]) <= s.radius
      : s.from ? (s.fromBox ? x >= s.fromBox[0] && x <= s.fromBox[2] && y >= s.fromBox[1] && y <= s.fromBox[3] : Math.hypot(x - s.from[0], y - s.from[1]) <= 4)
        : s.el && hits(s.el, x, y)));
  // Everything that can be seen and might be clicked, for injected errors.
  P.elements = () => {
    const wanted = 'button, a, input, textarea, select, label, li, h3, td, th, .alink, [role=tab], .ui-slider-handle, circle, rect, polygon, text, p, span, #area div, .ui-dialog div, .ui-datepicker a, .ui-icon';
    return qa(wanted).filter((e) => !inside(e) && !e.closest('#query') && shown(e) && (e.childElementCount === 0 || e.matches('button, a, label, li, [role=tab], h3')))
      .map((e) => ({ box: boxes(e)[0], name: name(e).slice(0, 60), role: role(e), value: e.value ?? '', tag: e.tagName.toLowerCase() }))
      .filter((e) => e.box).slice(0, 80);
  };
  // A page that is busy: nothing can be clicked until `ready`.
  const BUSY = {
    loading: 'background:rgba(255,255,255,.75)|<div style="margin:90px 40px;padding:14px;background:#fff;border:1px solid #888;font:14px Arial">Loading…</div>',
    ring: 'background:rgba(0,0,0,.35)|<div style="margin:90px 60px;width:36px;height:36px;border:5px solid #ddd;border-top-color:#2a6;border-radius:50%"></div>',
    wait: 'background:rgba(90,90,90,.8)|<div style="margin-top:95px;text-align:center;color:#fff;font:bold 13px Arial">Please wait</div>',
    blank: 'background:#fff|<div style="height:4px;width:60px;background:#38f"></div>',
    bars: 'background:#fff|' + [60, 90, 120, 150, 180].map((t) => `<div style="position:absolute;left:10px;top:${t}px;width:${130 - (t % 50)}px;height:12px;background:#e4e4e8"></div>`).join(''),
  };
  P.busy = (kind) => {
    const [style, html] = BUSY[kind].split('|');
    const cover = document.createElement('div');
    cover.id = 'presage-busy';
    cover.setAttribute('style', `position:fixed;left:0;top:50px;width:160px;height:160px;z-index:99999;${style}`);
    cover.innerHTML = html;
    document.body.appendChild(cover);
  };
  P.ready = () => q('#presage-busy')?.remove();
  Object.assign(P, { q, qa, words, goal, quoted, number, shown, hits, click, fill, each, first, byText, press, wait, drag, scroll, centre, rect, point, name, role, focused, allSelected, boxes, step });
})();
