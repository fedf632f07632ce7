// More tasks of dragging and of drawing.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, number, shown, click, fill, each, first, byText, wait, drag, scroll, centre, rect, point } = window.presage;
  const submit = () => click(q('#subbtn') ?? q('#submit') ?? byText('button', 'Submit'));
  const slideTo = (e, want) => window.presage.slide(e, want, 'slider');
  const middle = (e) => { const b = e.getBBox(); return [b.x + b.width / 2, b.y + b.height / 2]; };
  const onPage = ([x, y]) => { const f = q('svg').getBoundingClientRect(); return [x + f.left, y + f.top]; };
  const marked = (want, radius, called) => {
    const blue = q('#blue-circle');
    if (blue) { const [x, y] = middle(blue); if (Math.hypot(x - want[0], y - want[1]) <= radius) return submit(); }
    const [x, y] = onPage(want);
    return point(x, y, radius, called, q('svg'));
  };
  O['circle-center'] = () => marked(middle(q('.black-circle')), 7, 'centre of the circle');
  O['find-midpoint'] = () => { const [a, b] = qa('.black-circle').map(middle); return marked([(a[0] + b[0]) / 2, (a[1] + b[1]) / 2], 8, 'midpoint between the circles'); };
  O['bisect-angle'] = () => {
    const v = middle(q('.init-blue')), [a, b] = qa('.init-black').map(middle);
    const unit = (p) => { const d = [p[0] - v[0], p[1] - v[1]], n = Math.hypot(...d); return [d[0] / n, d[1] / n]; };
    const [u, w] = [unit(a), unit(b)], s = [u[0] + w[0], u[1] + w[1]], n = Math.hypot(...s);
    return marked([v[0] + s[0] / n * 45, v[1] + s[1] / n * 45], 5, 'place on the bisector');
  };
  const list = () => qa('#sortable li');
  const shift = (items, from, to) => {
    const [x, y] = centre(items[to]);
    const past = Math.sign(to - from) * 5;
    const b = items[to].getBoundingClientRect();
    return drag(items[from], [x, y + past], [b.left - 10, b.top, b.right + 10, b.bottom], words(items[from]), { toName: `position ${to + 1}` });
  };
  O['drag-items'] = () => {
    const [, who, where] = goal().match(/^Drag (\S+) (.*)\.$/);
    const items = list(), i = items.findIndex((e) => words(e) === who);
    const to = /top/.test(where) ? 0 : /bottom/.test(where) ? 4 : /down by/.test(where) ? i + 1 : /up by/.test(where) ? i - 1 : parseInt(where.match(/(\d)/)[1], 10) - 1;
    return shift(items, i, to);
  };
  O['drag-sort-numbers'] = () => {
    const items = list(), values = items.map((e) => number(words(e)));
    const sorted = [...values].sort((a, b) => a - b);
    const i = values.findIndex((v, k) => v !== sorted[k]);
    return i < 0 ? submit() : shift(items, values.indexOf(sorted[i], i), i);
  };
  const put = (e, box) => {
    const [cx, cy] = centre(e), own = shapes.gridCoords(e), frame = q('svg').getBoundingClientRect();
    const off = [cx - frame.left - own.x, cy - frame.top - own.y]; // its corner is what counts
    const to = [box.x + box.w / 2 + frame.left, box.y + box.h / 2 + frame.top];
    const toBox = [box.x + frame.left + Math.max(off[0], 0) + 3, box.y + frame.top + Math.max(off[1], 0) + 3, box.x + box.w + frame.left - 3, box.y + box.h + frame.top - 3];
    const kind = { rect: 'rectangle', circle: 'circle', polygon: 'triangle' }[e.tagName];
    return drag(e, to, toBox, `${e.getAttribute('fill')} ${kind}`, { toName: box.called, role: 'shape' });
  };
  const within = (e, b) => { const c = shapes.gridCoords(e); return c.x > b.x && c.x < b.x + b.w && c.y > b.y && c.y < b.y + b.h; };
  const kinds = { rectangles: 'rect:not(#shape-container)', circles: 'circle', triangles: 'polygon' };
  O['drag-shapes'] = () => {
    const box = { x: containerX, y: containerY, w: containerWidth, h: containerHeight, called: 'the black box' };
    const want = goal().match(/all (\w+) into/)[1];
    const outside = { x: box.x > 75 ? 4 : 125, y: box.y > 65 ? 5 : 110, w: 20, h: 20, called: 'outside the box' };
    const stray = qa('svg rect:not(#shape-container), svg circle, svg polygon').filter((e) => !e.matches(kinds[want]) && within(e, box));
    const open = qa(`svg ${kinds[want]}`).filter((e) => !within(e, box));
    return first(each(stray.map((e) => put(e, outside))), each(open.map((e) => put(e, box))), submit);
  };
  O['drag-shapes-2'] = () => {
    const left = { x: 2, y: 5, w: 70, h: 50, called: 'the left box' }, right = { x: 84, y: 5, w: 70, h: 50, called: 'the right box' };
    const said = goal().match(/all (\w+) (shapes )?into the left/);
    const goesLeft = (e) => (said[2] ? e.getAttribute('fill') === said[1] : e.matches(kinds[said[1]]));
    const open = qa('svg rect:not(#shape-container), svg circle, svg polygon').filter((e) => !within(e, goesLeft(e) ? left : right));
    return first(each(open.map((e) => put(e, goesLeft(e) ? left : right))), submit);
  };
  O['draw-line'] = () => {
    const level = /horizontal/.test(goal());
    const [cx, cy] = centre(q('#circ'));
    const spot = [q('#circ').cx.baseVal.value - 4, q('#circ').cy.baseVal.value - 4];
    if (q('svg path') && properDirection(level ? 'horizontal' : 'vertical', findStandardDevs(arrayPoints)) * 0.8 + touchesPoint(arrayPoints, spot) * 0.2 >= 0.6) return click('#controls button');
    const from = level ? [cx - 24, cy] : [cx, cy - 24], to = level ? [cx + 24, cy] : [cx, cy + 24];
    const near = (p) => (level ? [p[0] - 12, p[1] - 3, p[0] + 12, p[1] + 3] : [p[0] - 3, p[1] - 12, p[0] + 3, p[1] + 12]);
    return { kind: 'drag', from, to, el: q('svg'), fromBox: near(from), toBox: near(to), name: level ? 'place left of the dot' : 'place above the dot', toName: level ? 'the right of it' : 'below it', role: '' };
  };
  O['form-sequence'] = () => {
    const said = goal();
    const n = ['1st', '2nd', '3rd'].findIndex((p) => said.includes(p)) + 1;
    const slide = slideTo(q('#slider'), parseInt(said.match(/Select (-?\d+)/)[1], 10));
    const wrong = [1, 2, 3].filter((i) => q(`#checkbox-${i}`).checked !== (i === n)).map((i) => click(`#checkbox-${i}`, `${['1st', '2nd', '3rd'][i - 1]} checkbox`));
    if (slide && slide.kind === 'key') return slide;
    return first(each([slide, wrong]), submit);
  };
  O['resize-textarea'] = () => {
    const [dim, dir, was] = presageArguments;
    const now = dim === 'height' ? $('#tt').height() : $('#tt').width();
    if (dir === 'larger' ? now > was[dim] : now < was[dim]) return submit();
    const handle = q('.ui-resizable-se'), [x, y] = centre(handle);
    const by = dir === 'larger' ? 18 : -18;
    const to = dim === 'height' ? [x, y + by] : [x + by, y];
    const toBox = dim === 'height' ? (by > 0 ? [0, y + 4, 320, 320] : [0, 50, 320, y - 4]) : (by > 0 ? [x + 4, 50, 320, 320] : [0, 50, x - 4, 320]);
    return drag(handle, to, toBox, 'corner of the textarea', { toName: dir === 'larger' ? `make the ${dim} larger` : `make the ${dim} smaller`, role: 'handle' });
  };
  O['daily-calendar'] = () => {
    const said = goal();
    const length = { '30 mins': 1, '0.5 hours': 1, '60 mins': 2, '1 hour': 2, '90 mins': 3, '1.5 hours': 3 }[said.match(/Create a (.*?) event/)[1]];
    if (q('#create-event')) {
      const made = q('#newEvent');
      const [start, long] = [+made.dataset.start, +made.dataset.duration];
      const low = { '8AM': 16, '12PM': 24, '4PM': 32 }[said.match(/between (\w+) and/)[1]];
      if (long !== length || start < low || start + long > low + 8) return click('#controls .cancel');
      return first(fill('#event-name', quoted(), 'Event name field'), () => click('#controls .create'));
    }
    const low = { '8AM': 16, '12PM': 24, '4PM': 32 }[said.match(/between (\w+) and/)[1]];
    const taken = (e) => { const b = e.getBoundingClientRect(); return qa('.event').some((o) => { const c = o.getBoundingClientRect(); return c.top < b.bottom - 1 && b.top < c.bottom - 1; }); };
    for (let i = low; i + length <= low + 8; i++) {
      const cells = Array.from({ length }, (_, k) => q(`#hh-${i + k}`));
      if (cells.some(taken)) continue;
      const look = click(cells[cells.length - 1], 'free time');
      if (look.kind === 'scroll') return look;
      const [to, b] = [centre(cells[length - 1]), rect(cells[length - 1])];
      return drag(cells[0], length === 1 ? [to[0] + 12, to[1] + 3] : to, b, 'first free half hour', { toName: 'the end of the event', role: '' });
    }
    return null;
  };
})();
