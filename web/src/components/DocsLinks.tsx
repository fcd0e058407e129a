import { useLocation } from 'wouter';

/** The documentation of this release's repository. */
const DOCS = 'https://github.com/paved-road/paved-road/blob/main/docs';

/** The document for each page, by the first segment of its path. */
const PAGES: Record<string, [path: string, words: string]> = {
  '': ['getting-started/portal-tour.md', 'Tour of the portal'],
  new: ['reference/apis.md', 'Fields of all APIs'],
  environments: ['how-to/extend-stop-and-start.md', 'Extend, stop and start'],
  keys: ['reference/portal-pages.md', 'Pages of the portal'],
  operations: ['reference/prices.md', 'How prices are estimated'],
};

/** Links to the documentation: its start, and the document about the page. */
export function DocsLinks() {
  const [location] = useLocation();
  const [path, words] = PAGES[location.split('/')[1] ?? ''] ?? PAGES['']!;
  return (
    <footer className="foot">
      <nav aria-label="Documentation">
        <a href={`${DOCS}/index.md`} target="_blank" rel="noreferrer">
          Documentation
        </a>
        <a href={`${DOCS}/${path}`} target="_blank" rel="noreferrer">
          {words}
        </a>
        <a href={`${DOCS}/how-to/troubleshoot.md`} target="_blank" rel="noreferrer">
          Troubleshooting
        </a>
      </nav>
    </footer>
  );
}
