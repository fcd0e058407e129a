import { ActionIcon } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Icon } from './Icon';

/** A button that copies a text. `what` names the text in the label. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [state, setState] = useState<'' | 'copied' | 'refused'>('');
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(''), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => {
    // Without TLS, browsers give pages no access to the clipboard.
    const written =
      (navigator.clipboard as Clipboard | undefined)?.writeText(text) ??
      Promise.reject(new Error('no clipboard'));
    written.then(() => setState('copied')).catch(() => setState('refused'));
  };
  const says = {
    '': `Copy ${what}`,
    copied: 'Copied',
    refused: 'Your browser blocked the copy. Select the text and copy it.',
  }[state];
  return (
    <>
      <ActionIcon
        variant="subtle"
        color={state === 'refused' ? 'red' : state ? 'teal' : 'gray'}
        aria-label={`Copy ${what}`}
        title={says}
        onClick={copy}
        className="copy"
      >
        <Icon name={state === 'copied' ? 'check' : state ? 'alert' : 'copy'} size={16} />
      </ActionIcon>
      <span role="status" className="unseen">
        {state && says}
      </span>
    </>
  );
}
