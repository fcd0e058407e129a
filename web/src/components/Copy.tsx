import { ActionIcon } from '@mantine/core';
import { useEffect, useState } from 'react';
import { Icon } from './Icon';

/** Copies a text. What is copied is said by `what`. */
export function Copy({ text, what }: { text: string; what: string }) {
  const [state, setState] = useState<'' | 'copied' | 'refused'>('');
  useEffect(() => {
    if (!state) return;
    const timer = setTimeout(() => setState(''), 2000);
    return () => clearTimeout(timer);
  }, [state]);
  const copy = () => {
    // Without TLS browsers have no clipboard for pages.
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
