// More tasks of clicking.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, number, shown, click, fill, each, first, byText, wait, press, scroll, centre, point, boxes } = window.presage;
  const submit = () => click(q('#subbtn') ?? q('#submit') ?? byText('button', 'Submit'));
  const rank = (text) => ['1st', '2nd', '3rd'].findIndex((p) => text.includes(p));

  O['click-test'] = O['click-test-2'] = () => click('#subbtn');
  O['click-test-transfer'] = () => click(q('#subbtn'));
  O['click-button'] = O['unicode-test'] = () => each(qa('#area button').filter((e) => e.innerHTML === quoted()).map((e) => click(e)));
  O['click-button-sequence'] = () => click(buttonsPushed.length === 0 ? '#subbtn' : '#subbtn2');
  O['button-delay'] = () => {
    if (buttonsPushed.length === 0) return click('#subbtn');
    const left = timeDelay - (Date.now() - currentTime) / 1000;
    return left > 0.5 ? wait('the delay', Math.max(0.2, Math.round((left - 0.3) * 10) / 10)) : click('#subbtn2');
  };
  const boxesTask = (wanted) => () => {
    const all = qa('#area input[type=checkbox]');
    const open = all.filter((e) => e.checked !== wanted(words(e.parentElement)));
    return first(each(open.map((e) => click(e))), submit);
  };
  const listed = () => goal().replace(/^Select (words similar to )?/, '').replace(/ and click Submit\.?$/, '').split(', ');
  const exact = boxesTask((label) => listed().includes(label));
  O['click-checkboxes'] = O['click-checkboxes-large'] = O['click-checkboxes-transfer'] = exact;
  O['click-checkboxes-soft'] = boxesTask((label) => SYNONYMS.some((set) => set.includes(label) && listed().some((w) => set.includes(w))));
  O['click-option'] = () => { const want = listed()[0]; const e = qa('#boxes input').find((i) => words(i.parentElement) === want); return e.checked ? submit() : click(e); };
  O['number-checkboxes'] = () => {
    const pattern = PATTERNS[+quoted()].flat();
    const open = qa('#checkboxes input').map((e, i) => (e.checked !== !!pattern[i] ? click(e, `box ${i % 4 + 1} of row ${Math.floor(i / 4) + 1}`) : null));
    return first(each(open), submit);
  };
  O['click-dialog'] = () => click('.ui-dialog-titlebar-close', 'x', { role: 'button' });
  O['click-dialog-2'] = () => (quoted() === 'x' ? click('.ui-dialog-titlebar-close', 'x', { role: 'button' }) : click(byText('.ui-dialog button', quoted())));
  const month = (text) => ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'].indexOf(text);
  const date = () => {
    const [, m, d, y] = goal().match(/(\d\d)\/(\d\d)\/(\d{4})/);
    if (q('#datepicker').value === `${m}/${d}/${y}`) return submit();
    const picker = q('#ui-datepicker-div');
    if (!picker || !shown(picker)) return click('#datepicker', 'date field');
    const now = 12 * number(words(q('.ui-datepicker-year'))) + month(words(q('.ui-datepicker-month')));
    const want = 12 * +y + +m - 1;
    if (now > want) return click('.ui-datepicker-prev', 'previous month');
    if (now < want) return click('.ui-datepicker-next', 'next month');
    return click(qa('.ui-datepicker-calendar td a').find((e) => words(e) === String(+d)), String(+d), { role: 'day' });
  };
  for (const kind of ['', '-easy', '-medium', '-nodelay']) O[`choose-date${kind}`] = date;
  O['click-tab'] = () => click(byText('#area ul a', goal().match(/Tab #\d/)[0]), undefined, { role: 'tab' });
  const tabs = () => {
    const links = qa('.alink').filter((e) => e.innerHTML === quoted());
    const seen = links.filter(shown);
    if (seen.length) return each(seen.map((e) => click(e)));
    const heads = qa('#area ul a').filter((a) => !a.parentElement.classList.contains('ui-tabs-active'));
    const right = heads.filter((a) => links.some((e) => q(a.getAttribute('href')).contains(e)));
    return each([...right, ...heads.filter((a) => !right.includes(a))].map((a) => click(a, words(a), { role: 'tab' })));
  };
  for (const kind of ['', '-easy', '-medium', '-hard']) O[`click-tab-2${kind}`] = tabs;
  O['click-shades'] = () => {
    const color = goal().match(/shades of (\w+)/)[1];
    const open = qa('#area span').filter((e) => (e.className === 'selected') !== (e.dataset.color === color));
    return first(each(open.map((e) => click(e, `${e.dataset.color} shade`))), submit);
  };
  O['click-shape'] = () => each(presageGrid.shapes.filter((s) => shapes.shapeMatchesText(s, presageDesc)).map((s) => click(s.svg_shape[0][0], `${s.color} ${s.text}`)));
  O['count-shape'] = () => { const n = presageGrid.shapes.filter((s) => shapes.shapeMatchesText(s, presageDesc)).length; return click(byText('#count-buttons button', String(n))); };
  O['count-sides'] = () => click(`#form button[data-sides="${presageArguments[0]}"]`);
  O['identify-shape'] = () => { const s = presageGrid.shapes[0]; return click(`[data-type="${s.type !== 'shape' ? s.type : s.text}"]`); };
  O['grid-coordinate'] = () => { const at = goal().match(/\(.*?\)/)[0]; return click(document.getElementById(at), at, { role: 'grid point' }); };
  O['find-greatest'] = () => {
    const cards = qa('.card');
    const best = cards.reduce((a, b) => (number(a.textContent) > number(b.textContent) ? a : b));
    if (!best.classList.contains('hidden')) return click('#submit');
    return each([best, ...cards.filter((e) => e !== best && e.classList.contains('hidden'))].map((e) => click(e, `card ${cards.indexOf(e) + 1}`)));
  };
  O['ascending-numbers'] = () => { const one = qa('svg text').find((e) => e.textContent === '1'); return one ? click(one, '1') : click('svg rect', `square that hides ${q('svg rect').dataset.index}`); };
  O['navigate-tree'] = () => {
    const named = qa('#tree span').filter((e) => words(e) === quoted() || e.textContent === quoted());
    const seen = named.filter(shown);
    if (seen.length) return each(seen.map((e) => click(e, e.textContent)));
    const open = named.map((e) => { let up = e.parentElement.parentElement.closest('li'); while (up && !shown(up.children[1] ?? up)) up = up.parentElement.closest('li'); return up && (up.querySelector(':scope > span')); }).filter(Boolean);
    const closed = qa('#tree li.expandable > span.folder').filter((e) => shown(e) && !open.includes(e));
    return each([...open, ...closed].map((e) => click(e, e.textContent, { role: 'folder' })));
  };
  O['phone-book'] = () => {
    const [, who, what] = goal().match(/Find (.*) in the contact book and click on their (\w+)/);
    if (words(q('#contact .name')) === who) return click(`#contact .${what}`, words(q(`#contact .${what}`)));
    const turn = qa('#pagination li:not(.disabled) a').filter((a) => /^[<>]$/.test(words(a)));
    return each(['>', '<'].map((t) => click(turn.find((a) => words(a) === t), t)));
  };
  O['order-food'] = () => {
    const items = qa('.food-item');
    const name = (e) => e.dataset.item.trim();
    const count = (e) => parseInt(e.dataset.quantity, 10) || 0;
    const said = goal();
    const add = (e) => click(q('.add', e), `+ at ${name(e)}`);
    const take = (e) => click(q('.remove', e), `- at ${name(e)}`);
    const byName = said.match(/each item: (.*)$/);
    if (byName) {
      const want = byName[1].split(/, ?/).map((s) => s.trim());
      const need = (e) => (want.includes(name(e)) ? 1 : 0);
      const todo = items.filter((e) => count(e) !== need(e)).map((e) => (count(e) < need(e) ? add(e) : take(e)));
      return first(each(todo).sort((a, b) => (a.kind === 'scroll') - (b.kind === 'scroll')).slice(0, 4), () => click('#submit-order button'));
    }
    const [, n, type] = said.match(/Order (\d+) items that are (\S+)/);
    const fits = (e) => MENU[+e.dataset.id].types.includes(type);
    const wrong = items.filter((e) => count(e) > 0 && !fits(e));
    if (wrong.length) return each(wrong.map(take));
    const have = items.reduce((s, e) => s + count(e), 0);
    if (have > +n) return each(items.filter((e) => count(e) > 0).map(take));
    if (have < +n) { const near = items.filter((e) => fits(e) && shown(q('.add', e))); return each((near.length ? near : items.filter(fits).slice(0, 1)).map(add)); }
    return click('#submit-order button');
  };
  O['click-scroll-list'] = () => {
    const want = goal().match(/^Select (.*) from the scroll list/)[1].split(', ');
    if (want.length > 1) return null; // needs a click with ctrl held, which no action has
    const option = qa('#options option').find((e) => words(e) === want[0] || e.textContent === want[0]);
    if (option.selected && q('#options').selectedOptions.length === 1) return click(byText('#area button', 'Submit'));
    const list = q('#options'), frame = list.getBoundingClientRect(), own = option.getBoundingClientRect();
    const middle = (own.top + own.bottom) / 2;
    if (middle < frame.top + 3 || middle > frame.bottom - 3) return scroll(list, Math.round(middle - (frame.top + frame.bottom) / 2), want[0]);
    return click(option, want[0]);
  };
})();
