// Sets the colour scheme before the first paint. The script is a separate file, because the
// security headers forbid inline scripts.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem('paved-scheme');
  } catch {
    // The browser may block storage. Then the system's scheme applies.
  }
  const dark =
    chosen === 'dark' || (chosen !== 'light' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.setAttribute('data-mantine-color-scheme', dark ? 'dark' : 'light');
})();
