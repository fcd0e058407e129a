import type { Tone } from '../kinds/tone';
import { toLabel } from '../kinds/format';
import { Icon } from './Icon';

const ICONS = {
  good: 'check',
  busy: 'clock',
  bad: 'alert',
  leaving: 'trash',
  idle: 'pause',
} as const;

/** How something fares, in a word, a sign and a colour. */
export function Pill({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span className="pill" data-tone={tone}>
      <Icon name={ICONS[tone]} size={13} />
      {toLabel(word)}
    </span>
  );
}

/** The sign alone; the word stands beside it or is read out. */
export function Dot({ tone, word }: { tone: Tone; word: string }) {
  return (
    <span className="dot" data-tone={tone}>
      <Icon name={ICONS[tone]} size={14} />
      <span className="unseen">{word}</span>
    </span>
  );
}
