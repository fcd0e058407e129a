import { Notification } from '@mantine/core';
import { useAtomValue, useSetAtom } from 'jotai';
import { useEffect } from 'react';
import { noticesAtom, readAtom, type Notice } from '../state/notices';

/**
 * Messages about events. Each error is a separate alert. Successes are announced by their live
 * region.
 */
export function Notices() {
  const notices = useAtomValue(noticesAtom);
  const read = useSetAtom(readAtom);
  const of = (tone: Notice['tone']) =>
    notices
      .filter((notice) => notice.tone === tone)
      .map((notice) => <Told key={notice.id} notice={notice} read={read} />);
  return (
    <div className="notices">
      {of('bad')}
      <div role="status" aria-atomic="false">
        {of('good')}
      </div>
    </div>
  );
}

/**
 * How long a success stays, in milliseconds. The environment itself shows it, too. An error stays
 * until the user closes it.
 */
const WHILE = 8_000;

function Told({
  notice: { id, tone, title, detail },
  read,
}: {
  notice: Notice;
  read: (id: number) => void;
}) {
  useEffect(() => {
    if (tone === 'bad') return;
    const timer = setTimeout(() => read(id), WHILE);
    return () => clearTimeout(timer);
  }, [id, tone, read]);
  return (
    <Notification
      color={tone === 'bad' ? 'red' : 'teal'}
      title={title}
      withBorder
      role={tone === 'bad' ? 'alert' : 'group'}
      closeButtonProps={{ 'aria-label': 'Dismiss' }}
      onClose={() => read(id)}
    >
      {detail}
    </Notification>
  );
}
