// Which files differ in more than comments and strings: reads [{path, before, after}], prints an
// object with a key for each such file.
import { readFileSync } from 'node:fs';
import ts from 'typescript';

const TEXTS = new Set([
  ts.SyntaxKind.StringLiteral,
  ts.SyntaxKind.NoSubstitutionTemplateLiteral,
  ts.SyntaxKind.TemplateHead,
  ts.SyntaxKind.TemplateMiddle,
  ts.SyntaxKind.TemplateTail,
  ts.SyntaxKind.JsxText,
]);
// The formatter decides about these.
const FORM = new Set([ts.SyntaxKind.CommaToken, ts.SyntaxKind.SemicolonToken, ts.SyntaxKind.JSDoc]);

function tokens(path, text) {
  const found = [];
  const add = (node) => {
    if (FORM.has(node.kind)) return;
    const children = node.getChildren();
    if (children.length > 0) children.forEach(add);
    else found.push(TEXTS.has(node.kind) ? ts.SyntaxKind[node.kind] : node.getText());
  };
  add(ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true));
  return found.filter((token) => token !== '').join('\n');
}

const changed = JSON.parse(readFileSync(0, 'utf8')).filter(
  ({ path, before, after }) => tokens(path, before) !== tokens(path, after),
);
console.log(JSON.stringify(Object.fromEntries(changed.map(({ path }) => [path, true]))));
