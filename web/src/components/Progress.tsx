import { progressOf, type Tone } from '../kinds/tone';

/** The number of ready resources, or of deleted resources during a deletion. */
export function Progress({ text, tone }: { text: string; tone: Tone }) {
  const progress = progressOf(text);
  const what = tone === 'leaving' ? 'deleted' : 'ready';
  const label = progress
    ? `${progress.done} of ${progress.of} resources ${what}`
    : 'No resources yet';
  return (
    <div className="progress" data-tone={tone}>
      <progress aria-label={label} value={progress?.done ?? 0} max={progress?.of ?? 1} />
      <span aria-hidden="true" title={label}>
        {progress ? text : '–'}
      </span>
    </div>
  );
}
