#!/bin/sh
# Fetches the front-end files we vendor from npm, checks the tarballs, writes VENDORED.md.
# `make vendor` calls it; tests/web/test_vendor.py recomputes the hashes. No CDN, no bundler.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

HTMX=4.0.1
HTMX_SHA=5fba65616ca148a86d377e9771bcada7f35faee3558651feb929eea425e13b3c
RELATIVE_TIME=5.3.1
RELATIVE_TIME_SHA=d99f62cc01067eb749b2807d620fce2f1782cd87af986beb9baa5cdc5ee2d4bc
LUCIDE=1.62.0
LUCIDE_SHA=386f9080c440d6f5049cefe3456ae8357f7a0c7f76e59670cd1cb83bc7050a44
ICONS="activity archive ban box check chevron-down chevron-left chevron-right circle-alert
circle-check clock command copy corner-down-left database download external-link file-json
fold-vertical folder-tree gauge git-compare git-fork hash heart-pulse history inbox info key-round
keyboard layers layout-dashboard list log-out menu message-square messages-square monitor moon
package pause pencil pin play plus rotate-ccw rows-3 rows-4 search shield square-terminal sun table-2
tag timer trash-2 triangle-alert undo-2 user users wrench x zap"

fetch() { # package version sha256 -> unpacks into $work/<n>
    (cd "$work" && tarball=$(npm pack --silent "$1@$2") &&
        echo "$3  $tarball" | sha256sum --check --quiet &&
        mkdir "$4" && tar xzf "$tarball" -C "$4")
}

fetch htmx.org $HTMX $HTMX_SHA htmx
fetch @github/relative-time-element $RELATIVE_TIME $RELATIVE_TIME_SHA relative-time
fetch lucide-static $LUCIDE $LUCIDE_SHA lucide

cp "$work/htmx/package/dist/htmx.min.js" "$here/htmx-$HTMX.min.js"
sed -i '/^\/\/# sourceMappingURL=/d' "$here/htmx-$HTMX.min.js"
cp "$work/relative-time/package/dist/bundle.js" "$here/relative-time-element-$RELATIVE_TIME.js"

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
    row "icons.svg" "lucide-static (a sprite cut from it)" $LUCIDE "lucide-static/-/lucide-static-$LUCIDE.tgz" ISC
} > "$here/VENDORED.md"
