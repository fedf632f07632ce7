// Tasks with an inbox.
(() => {
  const { oracles: O, q, qa, words, goal, quoted, shown, click, fill, each, first, byText } = window.presage;

  // What is asked for: reply, forward, delete or important; whose mail; and the text or the receiver.
  const order = () => {
    const said = core.getUtterance();
    if (said.fields) {
      const f = said.fields;
      return { kind: f.task === 'star' ? 'important' : f.task ?? 'forward', by: f.by, text: f.message, to: f.to };
    }
    const text = goal();
    let m;
    if ((m = text.match(/Find the email by (.*?) and reply to them with the text "(.*)"/))) return { kind: 'reply', by: m[1], text: m[2] };
    if ((m = text.match(/Find the email by (.*?) and forward that email to (.*?)\./))) return { kind: 'forward', by: m[1], to: m[2] };
    if ((m = text.match(/Find the email by (.*?) and click the trash icon/))) return { kind: 'delete', by: m[1] };
    if ((m = text.match(/Find the email by (.*?) and click the star icon/))) return { kind: 'important', by: m[1] };
    return null;
  };
  const inbox = () => {
    const { kind, by, text, to } = order();
    const rows = () => qa('#main .email-thread').filter((e) => words(q('.email-sender', e)) === by);
    if (shown(q('#reply'))) {
      if (words(q('.reply-sender')) !== by || kind !== 'reply') return click('#close-reply', 'back arrow');
      return first(fill('#reply-text', text, 'reply'), () => click('#send-reply', 'send arrow'));
    }
    if (shown(q('#forward'))) {
      if (kind !== 'forward') return click('#close-forward', 'back arrow');
      return first(fill('#forward .forward-sender', to, 'to'), () => click('#send-forward', 'send arrow'));
    }
    if (shown(q('#email'))) {
      if (words(q('#email .email-sender')) !== by) return click('#close-email', 'back arrow');
      if (kind === 'reply') return click('#email .email-reply', 'Reply');
      if (kind === 'forward') return click('#email .email-forward', 'Forward');
      return click(`#email .email-actions .${kind === 'delete' ? 'trash' : 'star'}`, `${kind === 'delete' ? 'trash' : 'star'} icon`);
    }
    if (q('#search') && shown(q('#search'))) return click('#search-cancel', 'back arrow');
    if (kind === 'reply' || kind === 'forward') return each(rows().map((e) => click(q('.email-left', e) ?? e, `mail from ${by}`))).slice(0, 4);
    return each(rows().map((e) => [click(q(`.${kind === 'delete' ? 'trash' : 'star'}`, e), `${kind === 'delete' ? 'trash' : 'star'} icon at ${by}`), click(q('.email-left', e) ?? e, `mail from ${by}`)]));
  };
  for (const name of ['', '-delete', '-forward', '-forward-nl', '-forward-nl-turk', '-important', '-nl-turk', '-noscroll', '-reply', '-star-reply']) O[`email-inbox${name}`] = inbox;
})();
