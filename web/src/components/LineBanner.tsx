import { Button } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { retryNow } from '../api/live';
import { useElapsed } from '../state/useElapsed';
import { nowAtom } from '../state/now';
import { lineAtom } from '../state/session';
import { Icon } from './Icon';

/**
 * Says when what is shown is not what is: the line is down. Whoever reads on knows how old it is.
 */
export function LineBanner() {
  const line = useAtomValue(lineAtom);
  return (
    <div role="status" className="banner-place">
      {line.state === 'offline' && (
        <p className="banner">
          <Icon name="alert" /> You are offline. This page shows the last known state. Updates
          resume automatically.
        </p>
      )}
      {line.state === 'down' && <Down retryAt={line.retryAt} why={line.why} />}
    </div>
  );
}

/**
 * A line that comes back at once, as after every reset, was not worth a word. Of the countdown
 * nobody is told aloud.
 */
function Down({ retryAt, why }: { retryAt: number; why: string }) {
  const now = useAtomValue(nowAtom);
  const later = useElapsed(1_500);
  if (!later) return null;
  const seconds = Math.round((retryAt - now) / 1000);
  return (
    <p className="banner">
      <Icon name="alert" />
      <span>
        No live updates. This page shows the last known state. {why}{' '}
        <span aria-hidden="true">
          {seconds > 4 ? `Retrying in about ${seconds} s.` : 'Retrying…'}
        </span>
      </span>
      <Button size="compact-sm" variant="default" onClick={retryNow}>
        Retry now
      </Button>
    </p>
  );
}
