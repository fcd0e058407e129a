import { useAtomValue } from 'jotai';
import { Component, type ReactNode } from 'react';
import { lineAtom } from '../state/session';
import { Page } from './Page';
import { ProblemAlert } from './ProblemAlert';

interface Props {
  children: ReactNode;
  /** Whether it stands for a whole page, which needs a title then. */
  page?: boolean;
  /** What is said in place of why. */
  instead?: ReactNode;
}

/**
 * What cannot be drawn says so in its own place, and everything around it stays. What did not load,
 * e.g. as the portal has been upgraded
 * since, is asked for again only when the page is loaded again.
 */
export class Boundary extends Component<Props, { broken: boolean; error?: unknown }> {
  override state: { broken: boolean; error?: unknown } = { broken: false };

  static getDerivedStateFromError(error: unknown) {
    return { broken: true, error };
  }

  override render() {
    if (!this.state.broken) return this.props.children;
    const said = this.props.instead ?? <Broken error={this.state.error} />;
    return this.props.page ? <Page title="Something went wrong">{said}</Page> : said;
  }
}

/**
 * How Chromium, Firefox, Safari and the bundler's own loader call a part of the pages that did not
 * come.
 */
const UNLOADED =
  /dynamically imported module|Importing a module script failed|Unable to preload CSS/i;

/**
 * Loading the page again is offered only where there is a portal to load it from: offline it would
 * throw away what is shown.
 */
function Broken({ error }: { error: unknown }) {
  const offline = useAtomValue(lineAtom).state === 'offline';
  const again = offline ? undefined : () => window.location.reload();
  if (!(error instanceof Error && UNLOADED.test(error.message)))
    return <ProblemAlert title="Could not show this section" error={error} again={again} />;
  const why = offline
    ? 'You are offline. Reload the page when you are online again.'
    : 'The portal did not respond, or was upgraded in the meantime. Reload the page.';
  return <ProblemAlert title="Could not load this section" error={why} again={again} />;
}
