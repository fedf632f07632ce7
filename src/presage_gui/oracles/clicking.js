// Tasks of clicking: buttons, links, boxes, menus, tabs, lists, dates.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, number, shown, click, fill, each, first, byText, wait, drag, scroll, centre, rect, point } = window.presage;
  const submit = () => click(q('#subbtn') ?? q('#submit') ?? byText('button', 'Submit'));

  O['buy-ticket'] = () => {
    const rows = qa('.flight').map((e) => ({ e: q('.buy-ticket', e), price: +q('.buy-ticket', e).dataset.price, time: +q('.time-duration', e).dataset.duration }));
    const key = /cost/.test(goal()) ? 'price' : 'time';
    const sign = /cheapest|shortest/.test(goal()) ? 1 : -1;
    rows.sort((a, b) => sign * (a[key] - b[key]));
    return click(rows[0].e);
  };
  O['click-color'] = () => {
    const color = goal().match(/Click on the (\S+) colored/)[1];
    return each(qa('#area .color').filter((e) => color.includes(e.dataset.color)).map((e) => click(e, `${e.dataset.color} box`)));
  };
  O['click-link'] = () => each(qa('.alink').filter((e) => e.innerHTML === quoted()).map((e) => click(e)));
  O['click-menu-2'] = () => {
    let label = quoted(1);
    if (!label) {
      const icon = [...q('#query .ui-icon').classList].find((c) => c.startsWith('ui-icon-'));
      label = words(q(`#menu .${icon}`).parentElement) || q(`#menu .${icon}`).parentElement.textContent.trim();
    }
    const item = qa('#menu li > div').find((e) => e.textContent.trim() === label);
    if (shown(item)) return click(item, label);
    if (!shown(q('#menu'))) return click('#open-menu');
    return click(qa('#menu li > div').find((e) => e.textContent.trim() === 'Playback'), 'Playback');
  };
  O['click-widget'] = () => each(qa('#area .widget').filter((e) => q('[data-type]', e).dataset.type === quoted()).map((e) => q('[data-type]', e)).map((e) => click(e)));
  O['odd-or-even'] = () => {
    const todo = qa('.row').map((row) => {
      const odd = Math.abs(parseInt(words(q('.display-number', row)), 10)) % 2 === 1;
      const right = q(odd ? '.odd' : '.even', row);
      return right.classList.contains('selected') ? null : click(right, `${words(right)} beside ${words(q('.display-number', row))}`);
    });
    return first(each(todo), () => click('#submit'));
  };
  O['focus-text'] = () => click('#tt', 'textbox');
  O['focus-text-2'] = () => { const n = ['1st', '2nd', '3rd'].findIndex((p) => goal().includes(p)); return click(`#tt${n + 1}`, `${['1st', '2nd', '3rd'][n]} textbox`); };
  O['tic-tac-toe'] = () => {
    const lines = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 3, 6], [1, 4, 7], [2, 5, 8], [0, 4, 8], [2, 4, 6]];
    const board = gameState.slice();
    const wins = (b, m) => lines.some((l) => l.every((i) => b[i] === m));
    const free = (b) => b.map((v, i) => (v ? -1 : i)).filter((i) => i >= 0);
    const score = (b, me) => {
      if (wins(b, 1)) return 1;
      if (wins(b, -1)) return -1;
      const open = free(b);
      if (!open.length) return -0.5;
      const all = open.map((i) => { const c = b.slice(); c[i] = me; return score(c, -me); });
      return me === 1 ? Math.max(...all) : 0.55 * all.reduce((a, x) => a + x, 0) / all.length + 0.45 * Math.min(...all);
    };
    if (board.every((v) => v === 0)) return click('#ttt-4', 'centre square');
    const open = free(board).map((i) => { const c = board.slice(); c[i] = 1; return [score(c, -1), i]; });
    const best = Math.max(...open.map((o) => o[0]));
    const place = ['top left', 'top middle', 'top right', 'middle left', 'centre', 'middle right', 'bottom left', 'bottom middle', 'bottom right'];
    return each(open.filter((o) => o[0] >= best - 1e-9).map(([, i]) => click(`#ttt-${i}`, `${place[i]} square`)));
  };

  const section = (i) => qa('#area h3, .ui-accordion-header')[i];
  O['click-collapsible'] = () => (q('.ui-accordion-content') && shown(q('.ui-accordion-content')) ? submit() : click(section(0)));
  O['click-collapsible-nodelay'] = O['click-collapsible'];
  O['click-collapsible-2'] = () => {
    const links = qa('.alink').filter((e) => e.innerHTML === quoted());
    const seen = links.filter(shown);
    if (seen.length) return each(seen.map((e) => click(e)));
    const panels = qa('.ui-accordion-content');
    const closed = panels.map((p, i) => i).filter((i) => !shown(panels[i]));
    const holding = closed.filter((i) => links.some((e) => panels[i].contains(e)));
    return each([...holding, ...closed.filter((i) => !holding.includes(i))].map((i) => click(section(i))));
  };
  O['click-collapsible-2-nodelay'] = O['click-collapsible-2'];

  O['social-media'] = () => {
    const [, user, label] = goal().match(/For the user (\S+), click on the "(.*)" button/);
    const kind = { 'Share via DM': 'share', 'Copy link to Tweet': 'copy', 'Embed Tweet': 'embed', Mute: 'menu-user', Block: 'block-user', Report: 'report', Reply: 'reply', Retweet: 'retweet', Like: 'like' }[label];
    return each(qa('.media').filter((m) => words(q('.username', m)) === user).slice(0, 1).map((m) => {
      const e = q(`.controls .${kind}`, m);
      if (['reply', 'retweet', 'like'].includes(kind) || shown(e)) return click(e, label);
      return q('ul', m).classList.contains('hide') ? click(q('.more', m), `More at ${user}`) : click(e, label);
    }));
  };
  const posts = (enough) => {
    const said = goal();
    const label = said.match(/"(.*?)"/)[1];
    const user = said.match(/by (@\S+)/)[1];
    const kind = label.toLowerCase();
    const all = qa('.media').filter((m) => words(q('.username', m)) === user).map((m) => q(`.${kind}`, m));
    const wrong = qa('.controls span.active').filter((e) => !all.includes(e));
    if (wrong.length) return each(wrong.map((e) => click(e, `${e.classList[0]} to undo`)));
    const open = all.filter((e) => !e.classList.contains('active'));
    const done = all.length - open.length;
    const most = enough(said, all.length);
    if (done > most) return each(all.filter((e) => e.classList.contains('active')).map((e) => click(e, `${label} to undo`)));
    if (done < most) { const seen = open.filter(shown); return each((seen.length ? seen : open.slice(0, 1)).map((e) => click(e, `${label} at ${user}`))); }
    return click(byText('#submitRow button', 'Submit') ?? q('#submitRow button'));
  };
  O['social-media-all'] = () => posts((said, n) => n);
  O['social-media-some'] = () => posts((said, n) => Math.min(n, parseInt(said.match(/on (\d+) post/)[1], 10)));
  O['stock-market'] = () => {
    const limit = number(goal().match(/less than \$([\d.]+)/)[1].replace(/\.$/, ''));
    const price = number(words(q('#stock-price')).replace('$', '') || '9999');
    return price <= limit - 1 ? click('#buy') : wait('the price is too high');
  };
  O['generate-number'] = () => {
    const n = parseInt(words(q('#display-number')), 10);
    const said = goal();
    const limit = parseInt((said.match(/than (\d+)/) ?? [0, 0])[1], 10);
    const good = !isNaN(n) && (/less/.test(said) ? n < limit : /greater/.test(said) ? n > limit : /odd/.test(said) ? n % 2 === 1 : n % 2 === 0);
    return good ? click('#submit') : click('#generate');
  };
  O['use-spinner'] = () => {
    const want = parseInt(goal().match(/Select (-?\d+)/)[1], 10);
    const now = parseInt(q('#spinner').value, 10) || 0;
    if (now === want) return submit();
    return want > now ? click('.ui-spinner-up', 'up arrow') : click('.ui-spinner-down', 'down arrow');
  };
  O['search-engine'] = () => {
    const rank = parseInt(goal().match(/the (\d+)(st|nd|rd|th)/)[1], 10) - 1;
    const named = quoted();
    const box = q('#search-text');
    if (box.value.toLowerCase() !== named.toLowerCase()) return fill(box, named, 'search box');
    const shownNow = qa('#page-content a');
    if (!shownNow.length || shownNow[0].dataset.result === '-1') return click('#search');
    const target = shownNow.find((e) => +e.dataset.result === rank);
    if (target) return click(target);
    return click(qa('#pagination a').find((e) => words(e) === String(Math.floor(rank / 3) + 1)), `page ${Math.floor(rank / 3) + 1}`);
  };
})();
