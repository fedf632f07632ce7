// Tasks of typing, of selecting and of scrolling text.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, number, shown, click, fill, each, first, byText, press, wait, drag, scroll, centre, rect, focused, allSelected, boxes } = window.presage;
  const submit = () => click(q('#subbtn') ?? q('#submit') ?? byText('button', 'Submit'));

  O['enter-text'] = () => first(fill('#tt', quoted(), 'text field'), submit);
  O['enter-text-dynamic'] = O['enter-text'];
  O['enter-text-2'] = () => first(fill('#tt', /upper/.test(goal()) ? quoted().toUpperCase() : quoted().toLowerCase(), 'text field'), submit);
  O['copy-paste'] = () => first(fill('#answer-input', q('#to-copy').value.replace(/\n/g, ''), 'text field'), submit);
  O['copy-paste-2'] = () => { const n = ['1st', '2nd', '3rd'].findIndex((p) => goal().includes(p)) + 1; return first(fill('#answer-input', q(`#text-${n}`).value, 'text field'), submit); };
  O['find-word'] = () => {
    const n = parseInt(goal().match(/the (\d+)/)[1], 10) - 1;
    return first(fill('#answer-input', words(q('#area p')).split(' ')[n].replace(/[^a-zA-Z]+/g, ''), 'text field'), submit);
  };
  const bottom = (e) => e.scrollHeight - e.clientHeight - e.scrollTop;
  O['scroll-text'] = () => {
    const area = q('#text-area');
    const answer = area.value.trim().split(/\s/).pop().replace('.', '');
    if (q('#answer-input').value === answer) return submit();
    if (bottom(area) > 8 && !focused(q('#answer-input'))) return scroll(area, bottom(area), 'the last word');
    return fill('#answer-input', answer, 'text field');
  };
  O['scroll-text-2'] = () => {
    const area = q('#text-area');
    const down = /bottom/.test(goal());
    const left = down ? bottom(area) : area.scrollTop;
    return left > 5 ? scroll(area, down ? left : -left, down ? 'the bottom of the text' : 'the top of the text') : submit();
  };
  // A drag from the first to the last letter.
  const highlight = (e) => {
    const range = document.createRange();
    range.selectNodeContents(e);
    const lines = [...range.getClientRects()].filter((r) => r.width > 1);
    const [a, b] = [lines[0], lines[lines.length - 1]];
    const [from, to] = [[a.left + 1, (a.top + a.bottom) / 2], [b.right - 0.5, (b.top + b.bottom) / 2]];
    return { kind: 'drag', from, to, el: e, fromBox: [a.left - 6, a.top, a.left + 3, a.bottom], toBox: [b.right - 3, b.top, b.right + 12, b.bottom + 4], name: 'the start of the paragraph', toName: 'its end', role: '' };
  };
  const letters = (s) => s.replace(/\s/g, '');
  O['highlight-text'] = () => (letters(getSelection().toString()) === letters(q('#randomText').innerText) ? submit() : highlight(q('#randomText')));
  O['highlight-text-2'] = () => {
    const n = ['1st', '2nd', '3rd'].findIndex((p) => goal().includes(p));
    const e = qa('#randomText p')[n];
    return letters(getSelection().toString()) === letters(e.innerText) ? submit() : highlight(e);
  };

  const movie = () => {
    const [, genre, by, year] = goal().match(/Search for (.*) movies directed by (.*) from year (\d+)/);
    const caption = (e) => words(e.closest('p, tr, .row, .field, .ui-entry'));
    const todo = qa('#area input').map((e) => {
      const said = caption(e);
      return fill(e, /Genre/.test(said) ? genre : /Director/.test(said) ? by : year, `${said} field`, (a, b) => a.toLowerCase().trim() === b.toLowerCase());
    });
    const open = each(todo);
    const typing = open.filter((s) => s.kind !== 'click');
    return typing.length ? typing : first(open, () => click(q('#area button') ?? q('#area .final') ?? q('#area .ui-submit')));
  };
  O['multi-layouts'] = movie;
  O['multi-orderings'] = movie;
  O['guess-number'] = () => {
    const lower = q('#lower:not(.hide) span'), higher = q('#higher:not(.hide) span');
    const now = window.presageGuess ??= { low: 0, high: 9, episode: WOB_EPISODE_ID };
    if (now.episode !== WOB_EPISODE_ID) Object.assign(now, { low: 0, high: 9, episode: WOB_EPISODE_ID });
    if (lower) now.high = Math.min(now.high, parseInt(words(lower), 10) - 1);
    if (higher) now.low = Math.max(now.low, parseInt(words(higher), 10) + 1);
    const value = parseInt(q('#tt').value, 10);
    const fits = value >= now.low && value <= now.high;
    if (fits) return submit();
    const field = q('#tt');
    if (!focused(field)) return click(field, 'number field');
    const guess = Math.floor((now.low + now.high) / 2);
    if (field.value !== '' && !allSelected(field)) return { kind: 'key', keys: ['ctrl', 'a'], el: field, name: 'number field' };
    return Array.from({ length: now.high - now.low + 1 }, (_, i) => now.low + i).sort((a, b) => Math.abs(a - guess) - Math.abs(b - guess))
      .map((n) => ({ kind: 'type', el: field, text: String(n), name: 'number field' }));
  };
})();
