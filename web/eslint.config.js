import js from '@eslint/js';
import a11y from 'eslint-plugin-jsx-a11y';
import hooks from 'eslint-plugin-react-hooks';
import ts from 'typescript-eslint';

export default ts.config(
  { ignores: ['dist', 'src/api/schema.d.ts'] },
  js.configs.recommended,
  {
    files: ['**/*.{ts,tsx}'],
    extends: [
      ...ts.configs.strictTypeChecked,
      a11y.flatConfigs.strict,
      hooks.configs.flat['recommended-latest'],
    ],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    rules: {
      // Numbers need no conversion in template literals.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true }],
      // `_` names a property that a rest pattern excludes.
      '@typescript-eslint/no-unused-vars': ['error', { varsIgnorePattern: '^_+$' }],
      '@typescript-eslint/no-confusing-void-expression': [
        'error',
        { ignoreArrowShorthand: true, ignoreVoidReturningFunctions: true },
      ],
      // Use `!` only if the line above proves that the value exists. No rule can check this.
      '@typescript-eslint/no-non-null-assertion': 'off',
    },
  },
  {
    files: ['public/**/*.js'],
    languageOptions: {
      globals: { document: 'readonly', localStorage: 'readonly', matchMedia: 'readonly' },
    },
  },
  {
    files: ['scripts/**/*.mjs'],
    languageOptions: {
      globals: {
        Buffer: 'readonly',
        URL: 'readonly',
        console: 'readonly',
        document: 'readonly',
        fetch: 'readonly',
        process: 'readonly',
        window: 'readonly',
      },
    },
  },
);
