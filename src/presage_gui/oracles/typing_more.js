// More tasks of typing, and forms.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, number, shown, click, fill, each, first, byText, wait, press, scroll, centre, point, focused, drag } = window.presage;
  const submit = () => click(q('#subbtn') ?? q('#submit') ?? byText('button', 'Submit'));
  const one = (steps) => { const all = each(steps); const typing = all.filter((s) => s.kind !== 'click' && s.kind !== 'scroll'); return typing.length ? typing : all; };
  const rank = (text) => ['1st', '2nd', '3rd'].findIndex((p) => text.includes(p));

  O['enter-password'] = () => first(one([fill('#password', quoted(), 'Password field'), fill('#verify', quoted(), 'Verify password field')]), submit);
  O['login-user'] = () => first(one([fill('#username', quoted(0), 'Username field'), fill('#password', quoted(1), 'Password field')]), submit);
  O['login-user-popup'] = () => (q('#popup') ? click('#popup-cancel') : O['login-user']());
  O['read-table'] = () => {
    const key = goal().match(/value of (.*) into the text/)[1];
    return first(fill('#tt', words(qa('#tab tr').find((r) => words(r.children[0]) === key).children[1]), 'text field'), submit);
  };
  O['read-table-2'] = () => {
    const value = (i) => { const key = q(`#ll${i}`).dataset.key; return words(qa('#tab tr').find((r) => words(r.children[0]) === key).children[1]); };
    return first(one([1, 2].map((i) => fill(`#tt${i}`, value(i), `${q(`#ll${i}`).dataset.key} field`))), submit);
  };
  O['simple-arithmetic'] = () => {
    const [, a, op, b] = words(q('#math-problem')).match(/(\d+) ([-+x]) (\d+)/);
    return first(fill('#math-answer', { '+': +a + +b, '-': a - b, x: a * b }[op], 'answer field'), submit);
  };
  O['simple-algebra'] = () => {
    const text = words(q('#math-problem'));
    let m = text.match(/^x ([-+]) (\d+) = (-?\d+)/);
    let x;
    if (m) x = m[1] === '+' ? m[3] - m[2] : +m[3] + +m[2];
    else { m = text.match(/^(\d+) ([-+]) x = (-?\d+)/); x = m[2] === '+' ? m[3] - m[1] : m[1] - m[3]; }
    return first(fill('#math-answer', x, 'answer field'), submit);
  };
  O['visual-addition'] = () => first(fill('#math-answer', qa('.addition-block').length, 'answer field'), submit);
  O['text-transform'] = () => first(fill('#tt', qa('#captcha span').map((e) => e.textContent).join(''), 'text field'), submit);
  const picked = () => (focused(q('#col')) ? press('tab') : submit());
  O['use-colorwheel'] = () => first(fill('#col', ui_utils.colorNameToHex(goal().match(/Select (\w+) with/)[1]).slice(1).toUpperCase(), 'color field', (a, b) => a.toUpperCase() === b), picked);
  O['use-colorwheel-2'] = () => {
    const hex = q('#query .cc').getAttribute('style').match(/#(\w{6})/)[1].toUpperCase();
    return first(fill('#col', hex, 'color field', (a, b) => a.toUpperCase() === b), picked);
  };
  O['use-autocomplete'] = O['use-autocomplete-nodelay'] = () => {
    const [start, end] = [quoted(0), quoted(1) ?? ''];
    const fits = (item) => item.startsWith(start) && item.endsWith(end);
    const field = q('#tags');
    const menu = qa('.ui-autocomplete li').filter(shown).find((e) => fits(words(e)));
    if (fits(field.value)) return menu ? each([click(menu, words(menu)), press('escape')]) : submit();
    if (menu) return click(menu, words(menu));
    return fill(field, ITEMS.find(fits), 'Tags field');
  };
  // A field of parts: a click on its first part, then all digits.
  const parts = (want, digits, called) => {
    const field = q('#tt');
    if (field.value === want) return submit();
    const box = field.getBoundingClientRect();
    const begin = point(box.left + 9, (box.top + box.bottom) / 2, 8, called, field);
    begin.then = digits;
    return focused(field) && field.value === '' ? { kind: 'type', el: field, text: digits, name: called } : begin;
  };
  O['enter-date'] = () => { const [, m, d, y] = goal().match(/(\d\d)\/(\d\d)\/(\d{4})/); return parts(`${y}-${m}-${d}`, `${m}${d}${y}`, 'date field'); };
  O['enter-time'] = () => {
    const [, h, m, half] = goal().match(/Enter (\d+):(\d\d)\s*([AP]M)/);
    const hour = (+h % 12) + (half === 'PM' ? 12 : 0);
    return parts(`${String(hour).padStart(2, '0')}:${m}`, `${h.padStart(2, '0')}${m}${half}`, 'time field');
  };
  O['sign-agreement'] = () => {
    if (/Click the cancel/.test(goal())) return click('#cancel');
    const area = q('#text-area');
    if (q('#name').disabled) return scroll(area, area.scrollHeight - area.clientHeight - area.scrollTop, 'the end of the agreement');
    return first(fill('#name', quoted(0), 'Name field'), () => click(quoted(1) === 'Agree' ? '#agree' : '#cancel'));
  };
  O['form-sequence-2'] = () => {
    const said = goal();
    const radio = qa('#area input[type=radio]')[rank(said.match(/Check the (\w+) radio/)[1])];
    const box = rank(said.match(/into the (\w+) textbox/)[1]) + 1;
    const others = [1, 2, 3].filter((i) => i !== box && q(`#input-${i}`).value !== '').map((i) => (focused(q(`#input-${i}`)) ? press('ctrl', 'a') : click(`#input-${i}`, 'textbox to clear')));
    const names = ['1st', '2nd', '3rd'];
    const text = fill(`#input-${box}`, quoted(), `${names[box - 1]} textbox`);
    const tick = radio.checked ? null : click(radio, `${names[qa('#area input[type=radio]').indexOf(radio)]} radio button`);
    if (text && text.kind !== 'click') return each([text, tick]);
    return first(each([tick, text, others]), submit);
  };
  O['terminal'] = () => {
    const target = q('#terminal-target');
    const typed = q('#active-input').textContent;
    const ext = (goal().match(/extension (\S+)$/) ?? [0, ''])[1].replace(/^\./, '');
    const file = currentFiles.find((f) => (ext ? f.endsWith(`.${ext}`) : !f.includes('.')));
    const listedYet = qa('.terminal-output').some((e) => currentFiles.length && words(e).includes(currentFiles[0]));
    const command = listedYet ? `rm ${file}` : 'ls';
    if (!focused(target)) return click('#terminal', 'terminal');
    if (typed === command) return press('enter');
    if (typed !== '') return press('backspace');
    const ways = listedYet ? [command] : ['ls', `rm ${file}`];
    return ways.map((text) => ({ kind: 'type', el: q('#terminal'), text, name: 'terminal', role: 'terminal' }));
  };
})();
