/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: elements and attributes of a small strict part of XML. Never knows: what they mean. */
#include "config.h"

#include "topo/xml_scan.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

void tw_xml_init(struct tw_xml *xml, const char *source, const char *text, size_t bytes)
{
    xml->text = text;
    xml->bytes = bytes;
    xml->at = 0;
    xml->source = source;
    xml->line = 1;
    xml->status = TWILL_OK;
    xml->close_next = false;
    xml->name[0] = '\0';
    xml->nattributes = 0;
}

bool tw_xml_fail(struct tw_xml *xml, const char *format, ...)
{
    char text[256];
    if (tw_failed(xml->status))
        return false;
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    xml->status =
        tw_fail(TWILL_ERR_INVALID, "topology %s, line %u: %s", xml->source, xml->line, text);
    return false;
}

/* ---- characters ----------------------------------------------------------------------------- */

/* The next byte; 0 at the end (a NUL in the text is an error before that matters). */
static char peek(const struct tw_xml *xml)
{
    if (xml->at == xml->bytes)
        return '\0';
    return xml->text[xml->at];
}

static void step(struct tw_xml *xml)
{
    if (xml->at < xml->bytes && xml->text[xml->at++] == '\n')
        xml->line++;
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static bool is_control(char c) { return (unsigned char)c < 0x20 || c == 0x7f; }

static void skip_blanks(struct tw_xml *xml)
{
    while (is_blank(peek(xml)))
        step(xml);
}

static bool starts(const struct tw_xml *xml, const char *word)
{
    size_t length = strlen(word);
    return xml->bytes - xml->at >= length && memcmp(xml->text + xml->at, word, length) == 0;
}

static bool expect(struct tw_xml *xml, char c)
{
    if (peek(xml) != c)
        return tw_xml_fail(xml, "'%c' is missing", c);
    step(xml);
    return true;
}

/* To behind `end`. */
static bool skip_past(struct tw_xml *xml, const char *end, const char *what)
{
    while (xml->at < xml->bytes && !starts(xml, end))
        step(xml);
    if (xml->at == xml->bytes)
        return tw_xml_fail(xml, "%s does not end", what);
    xml->at += strlen(end);
    return true;
}

static bool read_name(struct tw_xml *xml, char name[TW_XML_NAME_BYTES])
{
    size_t length = 0;
    while (is_letter(peek(xml)) && length < TW_XML_NAME_BYTES - 1) {
        name[length++] = peek(xml);
        step(xml);
    }
    name[length] = '\0';
    if (length == 0)
        return tw_xml_fail(xml, "a name is missing");
    if (is_letter(peek(xml)))
        return tw_xml_fail(xml, "the name %s... is too long", name);
    return true;
}

/* ---- attributes ----------------------------------------------------------------------------- */

static int digit_of(char c, int base)
{
    int digit = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : 16;
    return digit < base ? digit : -1;
}

/* Behind "&#": the character. */
static bool read_reference(struct tw_xml *xml, char *c)
{
    int base = peek(xml) == 'x' ? 16 : 10, code = 0, digits = 0;
    if (base == 16)
        step(xml);
    for (; digit_of(peek(xml), base) >= 0 && digits < 4; digits++) {
        code = code * base + digit_of(peek(xml), base);
        step(xml);
    }
    if (digits == 0 || code > 0x7e || code < 0x20 || peek(xml) != ';')
        return tw_xml_fail(xml, "a reference to no printable ASCII character");
    step(xml);
    *c = (char)code;
    return true;
}

/* Behind "&": the character that an entity stands for. */
static bool read_entity(struct tw_xml *xml, char *c)
{
    static const struct {
        const char *name;
        char c;
    } known[] = {{"lt;", '<'}, {"gt;", '>'}, {"amp;", '&'}, {"quot;", '"'}, {"apos;", '\''}};
    if (peek(xml) == '#') {
        step(xml);
        return read_reference(xml, c);
    }
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (starts(xml, known[i].name)) {
            xml->at += strlen(known[i].name);
            *c = known[i].c;
            return true;
        }
    }
    return tw_xml_fail(xml, "an entity that is not known");
}

static bool read_value(struct tw_xml *xml, char value[TW_XML_VALUE_BYTES])
{
    size_t length = 0;
    char quote = peek(xml);
    if (quote != '"' && quote != '\'')
        return tw_xml_fail(xml, "a value does not begin with a quotation mark");
    step(xml);
    while (xml->at < xml->bytes && peek(xml) != quote) {
        char c = peek(xml);
        if (is_control(c) || c == '<')
            return tw_xml_fail(xml, "a value has a control character or '<' in it");
        if (length == TW_XML_VALUE_BYTES - 1)
            return tw_xml_fail(xml, "a value of more than %d bytes", TW_XML_VALUE_BYTES - 1);
        step(xml);
        if (c == '&' && !read_entity(xml, &c))
            return false;
        value[length++] = c;
    }
    value[length] = '\0';
    return expect(xml, quote);
}

static bool read_attribute(struct tw_xml *xml)
{
    if (xml->nattributes == TW_XML_ATTRIBUTES_MOST)
        return tw_xml_fail(xml, "%s has more than %d attributes", xml->name,
                           TW_XML_ATTRIBUTES_MOST);
    struct tw_xml_attribute *attribute = &xml->attribute[xml->nattributes];
    attribute->taken = false;
    if (!read_name(xml, attribute->name))
        return false;
    for (uint32_t i = 0; i < xml->nattributes; i++)
        if (strcmp(xml->attribute[i].name, attribute->name) == 0)
            return tw_xml_fail(xml, "%s has two attributes %s", xml->name, attribute->name);
    skip_blanks(xml);
    if (!expect(xml, '='))
        return false;
    skip_blanks(xml);
    xml->nattributes++;
    return read_value(xml, attribute->value);
}

/* ---- events --------------------------------------------------------------------------------- */

static enum tw_xml_event open_element(struct tw_xml *xml)
{
    xml->nattributes = 0;
    if (!read_name(xml, xml->name))
        return TW_XML_ERROR;
    for (;;) {
        bool blank = is_blank(peek(xml));
        skip_blanks(xml);
        if (peek(xml) == '>')
            break;
        if (peek(xml) == '/') {
            step(xml);
            xml->close_next = true;
            break;
        }
        if (xml->at == xml->bytes || !blank) {
            (void)tw_xml_fail(xml, "the element %s does not end", xml->name);
            return TW_XML_ERROR;
        }
        if (!read_attribute(xml))
            return TW_XML_ERROR;
    }
    return expect(xml, '>') ? TW_XML_OPEN : TW_XML_ERROR;
}

static enum tw_xml_event close_element(struct tw_xml *xml)
{
    if (!read_name(xml, xml->name))
        return TW_XML_ERROR;
    skip_blanks(xml);
    return expect(xml, '>') ? TW_XML_CLOSE : TW_XML_ERROR;
}

enum tw_xml_event tw_xml_next(struct tw_xml *xml)
{
    if (tw_failed(xml->status))
        return TW_XML_ERROR;
    if (xml->close_next) {
        xml->close_next = false;
        return TW_XML_CLOSE;
    }
    if (xml->at == 0 && starts(xml, "<?xml ") && !skip_past(xml, "?>", "the declaration"))
        return TW_XML_ERROR;
    for (;;) {
        skip_blanks(xml);
        if (!starts(xml, "<!--"))
            break;
        if (!skip_past(xml, "-->", "a comment"))
            return TW_XML_ERROR;
    }
    if (xml->at == xml->bytes)
        return TW_XML_END;
    if (peek(xml) != '<') {
        (void)tw_xml_fail(xml, "text where an element is expected");
        return TW_XML_ERROR;
    }
    step(xml);
    if (peek(xml) != '/')
        return open_element(xml);
    step(xml);
    return close_element(xml);
}

/* ---- values --------------------------------------------------------------------------------- */

/* The attribute, now taken; NULL when missing. */
static const char *take(struct tw_xml *xml, const char *name, bool need)
{
    for (uint32_t i = 0; i < xml->nattributes; i++) {
        if (strcmp(xml->attribute[i].name, name) == 0) {
            xml->attribute[i].taken = true;
            return xml->attribute[i].value;
        }
    }
    if (need)
        (void)tw_xml_fail(xml, "%s has no attribute %s", xml->name, name);
    return NULL;
}

bool tw_xml_number(struct tw_xml *xml, const char *name, bool need, uint64_t most, uint64_t *value)
{
    const char *text = take(xml, name, need);
    if (!text)
        return !need;
    uint64_t number = 0;
    bool good = text[0] != '\0';
    for (const char *at = text; *at && good; at++) {
        int digit = digit_of(*at, 10);
        good = digit >= 0 && number <= (UINT64_MAX - (uint64_t)(digit > 0 ? digit : 0)) / 10;
        if (good)
            number = number * 10 + (uint64_t)digit;
    }
    if (!good || number > most)
        return tw_xml_fail(xml, "%s %s=\"%s\": not a number from 0 to %llu", xml->name, name, text,
                           (unsigned long long)most);
    *value = number;
    return true;
}

bool tw_xml_index(struct tw_xml *xml, const char *name, bool need, uint32_t *value)
{
    uint64_t number = *value;
    bool good = tw_xml_number(xml, name, need, UINT32_MAX - 1, &number);
    if (good)
        *value = (uint32_t)number;
    return good;
}

bool tw_xml_text(struct tw_xml *xml, const char *name, bool need, char *value, size_t bytes)
{
    const char *text = take(xml, name, need);
    if (!text)
        return !need;
    if (strlen(text) >= bytes)
        return tw_xml_fail(xml, "%s %s: more than %zu bytes", xml->name, name, bytes - 1);
    memcpy(value, text, strlen(text) + 1);
    return true;
}

bool tw_xml_choice(struct tw_xml *xml, const char *name, const char *(*name_of)(unsigned),
                   uint8_t *value)
{
    const char *text = take(xml, name, true);
    if (!text)
        return false;
    for (unsigned i = 0; name_of(i); i++) {
        if (strcmp(name_of(i), text) == 0) {
            *value = (uint8_t)i;
            return true;
        }
    }
    return tw_xml_fail(xml, "%s %s=\"%s\": no such %s", xml->name, name, text, name);
}

bool tw_xml_taken(struct tw_xml *xml)
{
    for (uint32_t i = 0; i < xml->nattributes; i++)
        if (!xml->attribute[i].taken)
            return tw_xml_fail(xml, "%s: an attribute that is not known: %s", xml->name,
                               xml->attribute[i].name);
    return true;
}
