#!/bin/sh
# Fetches the front-end files we vendor from npm, checks the tarballs, writes VENDORED.md.
# `make vendor` calls it; tests/web/test_shell.py recomputes the hashes. No CDN. Only CodeMirror, which
# comes in pieces, is bundled: its pieces and the bundler are pinned, so the same file comes out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

HTMX=4.0.1
HTMX_SHA=5fba65616ca148a86d377e9771bcada7f35faee3558651feb929eea425e13b3c
RELATIVE_TIME=5.3.1
RELATIVE_TIME_SHA=d99f62cc01067eb749b2807d620fce2f1782cd87af986beb9baa5cdc5ee2d4bc
FONTS=5.3.0 # of @fontsource-variable/inter and @fontsource-variable/jetbrains-mono
INTER_SHA=d26710dd38e7217484a1d47ee76c024977ec550548876f26d06ed1844af09a14
JETBRAINS_MONO_SHA=996fe6368a480c9ce15d4de22a2682b7c40b403718fee2b15e7272f244fd993f
LUCIDE=1.62.0
LUCIDE_SHA=386f9080c440d6f5049cefe3456ae8357f7a0c7f76e59670cd1cb83bc7050a44
CODEMIRROR_VERSION=6.43.15 # that of @codemirror/view; all pieces stand below
ESBUILD=0.28.2
CODEMIRROR="
@codemirror/view 6.43.15 f0d5921406f841d211fa0887aabf10626c47676bfc63a4abed2a4d207e27c5ac
@codemirror/state 6.7.6 91d75acc955ceeaf86af9396c11cda7694fe6222aac8427fa033d89eff5ac839
@codemirror/language 6.13.1 e711ec28da046f6c163e777c5466d8ac805ee9ef5f51c511e8729c6789be7f83
@codemirror/streamparser 6.0.0 b4888c5ab40350e7a1747d765948a8fa45cfd127c479dd4cdef8097046efe14a
@codemirror/lang-json 6.0.2 cf896487f9b2bc9fb0ca6331b84c3a20c7a12687f52ae41777d24ef719e1bcc3
@codemirror/lint 6.9.8 637290fb6a6633a1a08f44c721afb75e0387d86c9b7c42d723a00a974811aae8
@codemirror/autocomplete 6.20.4 40b9657b137284426bcd829cdee7dc78a748337de997a12b10b5c725f67aa0d0
@codemirror/commands 6.11.1 f477f46d8c00278e1b387baebd53bd6556fd5f3c7401ebe2a05543600fcbff0f
@codemirror/search 6.7.2 cea9bcf62e34f89f2a49bc5e37bcf6d4f32049892f5a0b1cbd0b8160094dec97
@codemirror/merge 6.12.3 42d1bc38fff9bf0b5799d19ca7f00abab178765844f431d71cd9d2bfda0ce9cd
@lezer/common 1.5.5 ed93cee36403124f51eae638b8a032d6694914c19704de7610db7f2a9441c963
@lezer/highlight 1.2.5 e349eec1ff4382439c1e6286ae937e0203a8349c5192e2e133863391775ac7ff
@lezer/json 1.0.3 af9487c7c44816fc40e6c4b586c2cb1404f06fac4c71bedd07b5031675782fc1
@lezer/lr 1.4.12 64382ee7f144221e4c655f2034393c6be9cecaf5ea2ec1c1edeb99424defb272
style-mod 4.1.4 769073434ab698eb035cbaa9df5d028231c25d95bc7b8676a46d603fb2e89e39
crelt 1.0.7 3542299c0278fdc26aceb2b13d31bffbcb89d7367706bbc457130e3fd103c03e
w3c-keyname 2.2.8 05d21484026d1f2dd842c843181e391e66d60f1d5dff292d562c3f40302dab36
@marijn/find-cluster-break 1.0.4 5d12b770b64d46632c84fcd18e1d4c09f195ed0f5dbc71f94a41f0af333eaeae
"
ICONS="activity archive ban check chevron-down chevron-left chevron-right circle-alert
circle-check clock copy database external-link fold-vertical gauge git-compare git-fork hash
heart-pulse history inbox info key-round keyboard layers layout-dashboard log-out menu
message-square messages-square monitor moon pause pencil pin play plus rotate-ccw rows-3 search
shield table-2 timer trash-2 triangle-alert undo-2 user users wrench x zap"

fetch() { # package version sha256 -> unpacks into $work/<n>
    (cd "$work" && tarball=$(npm pack --silent "$1@$2") &&
        echo "$3  $tarball" | sha256sum --check --quiet &&
        mkdir "$4" && tar xzf "$tarball" -C "$4")
}

fetch htmx.org $HTMX $HTMX_SHA htmx
fetch @github/relative-time-element $RELATIVE_TIME $RELATIVE_TIME_SHA relative-time
fetch lucide-static $LUCIDE $LUCIDE_SHA lucide
fetch @fontsource-variable/inter $FONTS $INTER_SHA inter
fetch @fontsource-variable/jetbrains-mono $FONTS $JETBRAINS_MONO_SHA jetbrains-mono

cp "$work/htmx/package/dist/htmx.min.js" "$here/htmx-$HTMX.min.js"
sed -i '/^\/\/# sourceMappingURL=/d' "$here/htmx-$HTMX.min.js"
cp "$work/relative-time/package/dist/bundle.js" "$here/relative-time-element-$RELATIVE_TIME.js"

# Variable fonts, one file per script; a browser loads those whose characters are on the page.
rm -rf "$here/fonts"
mkdir "$here/fonts"
for font in inter jetbrains-mono; do
    cp "$work/$font/package/files/"*-wght-normal.woff2 "$here/fonts"
    cp "$work/$font/package/LICENSE" "$here/fonts/$font-LICENSE.txt"
    sed 's|\./files/||' "$work/$font/package/index.css"
done > "$here/fonts/fonts.css"

# CodeMirror: the pieces side by side as node_modules, then one ES module out of what editor.js uses.
echo "$CODEMIRROR" | while read -r package version sha256; do
    [ -n "$package" ] || continue
    fetch "$package" "$version" "$sha256" codemirror-piece
    mkdir -p "$work/node_modules/$package"
    mv "$work/codemirror-piece/package"/* "$work/node_modules/$package"
    rm -r "$work/codemirror-piece"
done
cat > "$work/editor.mjs" <<'EOF'
export { Compartment, EditorState, Prec } from "@codemirror/state";
export {
  EditorView, drawSelection, highlightActiveLine, highlightActiveLineGutter, hoverTooltip, keymap,
  lineNumbers,
} from "@codemirror/view";
export {
  HighlightStyle, bracketMatching, codeFolding, ensureSyntaxTree, foldGutter, foldKeymap, indentOnInput,
  syntaxHighlighting, syntaxTree,
} from "@codemirror/language";
export { json } from "@codemirror/lang-json";
export { forEachDiagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
export {
  autocompletion, closeBrackets, closeBracketsKeymap, closeCompletion, completionKeymap, completionStatus,
} from "@codemirror/autocomplete";
export { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
export { highlightSelectionMatches, openSearchPanel, searchKeymap } from "@codemirror/search";
export { goToNextChunk, goToPreviousChunk, unifiedMergeView } from "@codemirror/merge";
export { tags } from "@lezer/highlight";
EOF
npm install --silent --no-save --prefix "$work/bundler" "esbuild@$ESBUILD"
(cd "$work" && bundler/node_modules/.bin/esbuild editor.mjs --bundle --format=esm --minify \
    --target=es2022 --charset=utf8 --legal-comments=none --log-level=warning \
    --outfile="$here/codemirror-json-$CODEMIRROR_VERSION.mjs")

# One <symbol> per icon; colour and stroke come from the page's CSS.
{
    printf '<svg xmlns="http://www.w3.org/2000/svg">\n'
    for icon in $ICONS; do
        printf '<symbol id="%s" viewBox="0 0 24 24">' "$icon"
        sed -e '/^<!--/d' "$work/lucide/package/icons/$icon.svg" | tr -d '\n' |
            sed -e 's/<svg[^>]*>//' -e 's/<\/svg>//' -e 's/  */ /g'
        printf '</symbol>\n'
    done
    printf '</svg>\n'
} > "$here/../icons.svg"

row() { # file name version package tarball-sha licence
    echo "| \`$1\` | $2 | $3 | https://registry.npmjs.org/$4 | \`$(cd "$here/.." && sha256sum "$1" | cut -d' ' -f1)\` | $5 |"
}
{
    echo "# Vendored front-end files"
    echo
    echo "Written by \`vendor.sh\` (\`make vendor\`), which also checks each tarball's sha256. Paths are"
    echo "relative to \`static/\`; the hash is that of the file as it stands here."
    echo
    echo "| file | name | version | source tarball | sha256 | license |"
    echo "|---|---|---|---|---|---|"
    row "vendor/htmx-$HTMX.min.js" htmx $HTMX "htmx.org/-/htmx.org-$HTMX.tgz" 0BSD
    row "vendor/relative-time-element-$RELATIVE_TIME.js" "@github/relative-time-element" $RELATIVE_TIME \
        "@github/relative-time-element/-/relative-time-element-$RELATIVE_TIME.tgz" MIT
    row "vendor/codemirror-json-$CODEMIRROR_VERSION.mjs" "CodeMirror (bundled from the pieces below)" \
        $CODEMIRROR_VERSION "@codemirror/view/-/view-$CODEMIRROR_VERSION.tgz" MIT
    row vendor/fonts/fonts.css "@fontsource-variable/inter, jetbrains-mono" $FONTS \
        "@fontsource-variable/inter/-/inter-$FONTS.tgz" MIT
    for font in inter jetbrains-mono; do
        for file in "$here/fonts/$font"-*.woff2; do
            row "vendor/fonts/${file##*/}" "@fontsource-variable/$font" $FONTS \
                "@fontsource-variable/$font/-/$font-$FONTS.tgz" OFL-1.1
        done
    done
    row "icons.svg" "lucide-static (a sprite cut from it)" $LUCIDE "lucide-static/-/lucide-static-$LUCIDE.tgz" ISC
    echo
    echo "The pieces of CodeMirror, all MIT, bundled by esbuild $ESBUILD:"
    echo
    echo "| package | version | sha256 of the tarball |"
    echo "|---|---|---|"
    echo "$CODEMIRROR" | while read -r package version sha256; do
        [ -z "$package" ] || echo "| $package | $version | \`$sha256\` |"
    done
} > "$here/VENDORED.md"
