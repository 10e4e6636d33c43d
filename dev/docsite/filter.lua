-- What pandoc does between reading and writing a page: callouts, tables, formulas, code, and the anchors of documented names.

local names = { note = "Note", tip = "Tip", warning = "Warning", important = "Important", caution = "Caution" }

-- `::: {.callout-tip collapse="true" title="Answer"}` becomes a box, or a <details> when it is collapsible.
-- The title is the attribute, else a heading that opens the box, else the kind of callout.
local function callout(div, kind)
  local content = div.content
  local title = pandoc.Inlines(div.attributes.title or names[kind])
  if not div.attributes.title and content[1] and content[1].t == "Header" then
    title = content[1].content
    content:remove(1)
  end
  local classes = "callout callout-" .. kind
  if div.attributes.collapse then
    local open = div.attributes.collapse == "false" and " open" or ""
    local result = pandoc.Blocks({ pandoc.RawBlock("html", '<details class="' .. classes .. '"' .. open .. "><summary>"),
      pandoc.Plain(title), pandoc.RawBlock("html", "</summary>") })
    result:extend(content)
    result:insert(pandoc.RawBlock("html", "</details>"))
    return result
  end
  content:insert(1, pandoc.Div(pandoc.Para(title), pandoc.Attr("", { "callout-title" })))
  return pandoc.Div(content, pandoc.Attr(div.identifier, { "callout", "callout-" .. kind }, { role = "note" }))
end

-- A documented name owns the anchor that nbdev's links point at: the name in lower case.
local owned = {}
local function own_anchor(div)
  return div:walk({
    Header = function(h)
      local id = pandoc.utils.stringify(h):lower()
      if owned[id] then return nil end
      owned[id] = h.identifier
      h.identifier = id
      h.classes:insert("doc-name")
      return h
    end,
  })
end

local function Div(div)
  for _, class in ipairs(div.classes) do
    local kind = class:match("^callout%-(%a+)$")
    if kind and names[kind] then return callout(div, kind) end
    if class == "show-doc" then return own_anchor(div) end
  end
end

-- An ordinary heading with the words of a documented name takes the anchor which that name gave up.
local function Header(h)
  if owned[h.identifier] and not h.classes:includes("doc-name") then
    h.identifier = owned[h.identifier]
    return h
  end
end

-- Wide tables scroll inside their own box, by keyboard too.
local function Table(t)
  return pandoc.Div(t, pandoc.Attr("", { "table" }, { tabindex = "0", role = "group", ["aria-label"] = "Table" }))
end

-- Code in a language is highlighted later (docsite_cells.py): pandoc would spend most of its time on it.
local function CodeBlock(c)
  local language = c.classes[1]
  if language and not language:match("^out") then
    return pandoc.CodeBlock(c.text, pandoc.Attr("", {}, { language = language }))
  end
end

-- A displayed formula scrolls inside its own line when the screen is narrower.
local function Math(m)
  if m.mathtype == "DisplayMath" then return pandoc.Span(m, pandoc.Attr("", { "equation" })) end
end

return { { Div = Div, Table = Table, Math = Math, CodeBlock = CodeBlock }, { Header = Header } }
