#include "stretto/view/document.h"

#include <fmt/format.h>

#include "stretto/view/escape.h"
#include "stretto/view/inner/palette.h"

namespace stretto {

const std::string_view prose_style = R"css(
body { margin: 0 auto; max-width: 1480px; padding: 20px 28px 40px; background: var(--bg); color: var(--fg);
  font: 14px/1.45 system-ui, "DejaVu Sans", sans-serif; }
h1 { font-size: 22px; font-weight: 600; margin: 0 0 12px; overflow-wrap: anywhere; }
h2, summary { font-size: 15px; font-weight: 600; margin: 28px 0 8px; }
pre { background: var(--panel); border: 1px solid var(--line); border-radius: 6px; padding: 10px 14px; overflow-x: auto;
  font: 12.5px/1.5 "DejaVu Sans Mono", monospace; margin: 0; }
.wide { overflow-x: auto; }
.wide svg { max-width: 100%; min-width: 900px; height: auto; }
)css";

std::string html_document(const Document& d) {
  std::string css = theme_variables();
  for (const std::string_view part : d.css) css += part;
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
             "<style>{}</style>\n</head>\n<body>\n{}",
             escape_xml(d.title), css, d.body) +
         (d.script.empty() ? "" : fmt::format("<script>{}</script>\n", d.script)) + "</body>\n</html>\n";
}

}  // namespace stretto
