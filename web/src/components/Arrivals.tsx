import { useAtomValue, useSetAtom } from 'jotai';
import { useEffect, useRef } from 'react';
import { rowsAtom, syncedAtom, type Row } from '../state/environments';
import { arrivalAtom, tellAtom } from '../state/notices';
import { meAtom } from '../state/session';

/**
 * Tells the user when one of their environments becomes ready or fails: by a notice, in the title of
 * a window in the background, and by a notification of the browser, if the user allows them.
 */
export function Arrivals() {
  const rows = useAtomValue(rowsAtom);
  const synced = useAtomValue(syncedAtom);
  const me = useAtomValue(meAtom);
  const tell = useSetAtom(tellAtom);
  const before = useRef<Map<string, string>>(undefined);
  const mark = useAtomValue(arrivalAtom);
  const setMark = useSetAtom(arrivalAtom);
  useEffect(() => {
    if (!synced) return;
    const known = before.current;
    before.current = new Map(rows.map((row) => [row.key, stateOf(row)]));
    // The environments of the first list are no news.
    if (!known) return;
    for (const row of rows) {
      const was = known.get(row.key);
      const is = stateOf(row);
      if (row.owner !== me?.login || was !== 'under way' || is === was) continue;
      const title = is === 'failed' ? `${row.name} failed` : `${row.name} is ready`;
      tell({ tone: is === 'failed' ? 'bad' : 'good', title });
      if (document.hidden) {
        setMark(title);
        announce(title, `${row.namespace}/${row.name}`);
      }
    }
  }, [rows, synced, me, tell, setMark]);
  useEffect(() => {
    if (!mark) return;
    const seen = () => {
      if (!document.hidden) setMark('');
    };
    document.addEventListener('visibilitychange', seen);
    return () => document.removeEventListener('visibilitychange', seen);
  }, [mark, setMark]);
  return null;
}

type State = 'under way' | 'ready' | 'failed' | 'other';

function stateOf({ phase, failed }: Row): State {
  if (failed) return 'failed';
  if (phase === 'Ready') return 'ready';
  return /^(Pending|Provisioning|Starting|)$/.test(phase) ? 'under way' : 'other';
}

function announce(title: string, body: string): void {
  if (!('Notification' in window) || Notification.permission !== 'granted') return;
  try {
    new Notification(title, { body, tag: body });
  } catch {
    // Browsers of phones allow notifications only from a service worker.
  }
}
