// Tasks of dragging, of drawing and of sliders.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, number, shown, click, fill, each, first, byText, wait, drag, scroll, centre, rect, point } = window.presage;
  const submit = () => click(q('#subbtn') ?? q('#submit') ?? byText('button', 'Submit'));

  O['drag-box'] = () => {
    const [s, l] = [q('#draggableSmall'), q('#draggableLarge')];
    const [a, b] = [s.getBoundingClientRect(), l.getBoundingClientRect()];
    const room = { x: a.left - b.left, y: a.top - b.top };
    if (room.x > 0 && room.x < 30 && room.y > 0 && room.y < 30) return submit();
    const [cx, cy] = centre(l);
    return drag(s, [cx, cy], [cx - 13, cy - 13, cx + 13, cy + 13], 'small box', { toName: 'the middle of the large box' });
  };
  const direction = (e, called) => {
    const way = goal().match(/\b(left|right|up|down)\b/)[1];
    const now = shapes.gridCoords(e), start = e.getBBox();
    const moved = { up: now.y < start.y, down: now.y > start.y, left: now.x < start.x, right: now.x > start.x }[way];
    if (moved) return submit();
    const [cx, cy] = centre(e);
    const [dx, dy] = { up: [0, -22], down: [0, 22], left: [-22, 0], right: [22, 0] }[way];
    const frame = q('svg').getBoundingClientRect();
    const toBox = { up: [frame.left, frame.top, frame.right, cy - 6], down: [frame.left, cy + 6, frame.right, frame.bottom], left: [frame.left, frame.top, cx - 6, frame.bottom], right: [cx + 6, frame.top, frame.right, frame.bottom] }[way];
    return drag(e, [cx + dx, cy + dy], toBox, called, { toName: way });
  };
  O['drag-circle'] = () => direction(q('svg circle'), 'circle');
  O['drag-single-shape'] = () => direction(q('.black-shape'), q('.black-shape').tagName === 'circle' ? 'circle' : q('.black-shape').tagName === 'rect' ? 'square' : 'triangle');

  const slide = (e, want, called) => {
    const slider = $(e), now = slider.slider('value');
    if (now === want) return null;
    const [low, high] = [slider.slider('option', 'min'), slider.slider('option', 'max')];
    const handle = q('.ui-slider-handle', e);
    const frame = e.getBoundingClientRect();
    const upright = slider.slider('option', 'orientation') === 'vertical';
    const at = (value) => { const share = (value - low) / (high - low); return upright ? [frame.left + frame.width / 2, frame.bottom - share * frame.height] : [frame.left + share * frame.width, frame.top + frame.height / 2]; };
    const tick = (upright ? frame.height : frame.width) / (high - low);
    // Near enough: the next step is the arrow keys.
    if (document.activeElement === handle && Math.abs(now - want) <= Math.max(3, 2 / tick)) return { kind: 'key', keys: [want > now ? 'right' : 'left'], el: handle, name: called, role: 'slider handle' };
    const [x, y] = at(want);
    const near = Math.max(tick * 0.45, 1.5) + (tick < 3 ? 4 : 0);
    const toBox = upright ? [frame.left - 60, y - near, frame.right + 60, y + near] : [x - near, frame.top - 60, x + near, frame.bottom + 60];
    return drag(handle, [x, y], toBox, called, { toName: `${want}`, role: 'slider handle' });
  };
  window.presage.slide = slide;
  O['use-slider'] = () => first(slide(q('#slider'), parseInt(goal().match(/Select (-?\d+)/)[1], 10), 'slider'), submit);
  O['use-slider-2'] = () => {
    const want = JSON.parse(goal().match(/\[.*\]/)[0]);
    const open = [1, 2, 3].map((i) => slide(q(`#slider-${i}`), want[i - 1], ['first', 'second', 'third'][i - 1] + ' slider'));
    const keys = each(open).filter((s) => s.kind === 'key');
    return keys.length ? keys : first(each(open), submit);
  };
  O['right-angle'] = () => {
    const a = q('#init-black').getBBox(), v = q('#init-blue').getBBox();
    const frame = q('svg').getBoundingClientRect();
    const blue = q('#blue-circle');
    const A = [a.x + 3, a.y + 3], V = [v.x + 3, v.y + 3];
    const angle = (p) => { const u = [A[0] - V[0], A[1] - V[1]], w = [p[0] - V[0], p[1] - V[1]]; return Math.acos((u[0] * w[0] + u[1] * w[1]) / (Math.hypot(...u) * Math.hypot(...w))) * 180 / Math.PI; };
    if (blue) { const b = blue.getBBox(); if (Math.abs(angle([b.x + 3, b.y + 3]) - 90) < 12) return submit(); }
    const u = [A[0] - V[0], A[1] - V[1]], n = Math.hypot(...u);
    const inFrame = (p) => p[0] > 6 && p[0] < frame.width - 6 && p[1] > 6 && p[1] < frame.height - 6;
    const options = [];
    for (const sign of [1, -1]) for (const d of [45, 35, 55, 28, 65]) { const p = [V[0] - sign * u[1] / n * d, V[1] + sign * u[0] / n * d]; if (inFrame(p)) { options.push([p, d]); break; } }
    return options.map(([p, d]) => point(p[0] + frame.left, p[1] + frame.top, d * 0.2, 'place for the third point', q('svg')));
  };
})();
