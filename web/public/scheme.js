// Sets light or dark before anything is painted; it stands in a file because inline scripts are
// forbidden.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('paved-scheme');
  } catch {
    // Storage may be forbidden: then the system decides.
  }
  const dark =
    chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light');
})();
