import { Button } from '@mantine/core';
import { useAtomValue } from 'jotai';
import { retryNow } from '../api/live';
import { useElapsed } from '../state/useElapsed';
import { nowAtom } from '../state/now';
import { lineAtom } from '../state/session';
import { Icon } from './Icon';

/** Warns that the connection is lost and the displayed data may be outdated. */
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
 * The delay hides short interruptions, for example after every reset. Screen readers skip the
 * countdown.
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
