/* SPDX-License-Identifier: Apache-2.0 */
/* Knows: elements and attributes of a small strict part of XML. Never knows: what they mean. */
#ifndef TW_TOPO_XML_SCAN_H
#define TW_TOPO_XML_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "twill.h"

/*
 * Elements with attributes, comments, one declaration in front; the five named entities and
 * decimal or hexadecimal references to ASCII characters. No text between elements, no document
 * type, no processing instructions, no CDATA, no namespaces.
 */
#define TW_XML_NAME_BYTES 32
#define TW_XML_VALUE_BYTES 512
#define TW_XML_ATTRIBUTES_MOST 16

enum tw_xml_event {
    TW_XML_OPEN,  /* <name ...>, or <name .../>: a CLOSE follows then, too */
    TW_XML_CLOSE, /* </name> */
    TW_XML_END,   /* of the text */
    TW_XML_ERROR  /* tw_fail was called; status says which */
};

struct tw_xml_attribute {
    char name[TW_XML_NAME_BYTES], value[TW_XML_VALUE_BYTES];
    bool taken;
};

struct tw_xml {
    const char *text; /* borrowed */
    size_t bytes, at;
    const char *source; /* borrowed; for errors: a file's name */
    uint32_t line;      /* of the event, from 1 */
    enum twill_status status;
    bool close_next; /* the element just opened ends at once */
    char name[TW_XML_NAME_BYTES];
    uint32_t nattributes;
    struct tw_xml_attribute attribute[TW_XML_ATTRIBUTES_MOST];
};

void tw_xml_init(struct tw_xml *xml, const char *source, const char *text, size_t bytes);

enum tw_xml_event tw_xml_next(struct tw_xml *xml);

/** Says what is wrong at the present line, unless there is an error already. @return false */
bool tw_xml_fail(struct tw_xml *xml, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Attributes of the element just opened; each can be taken once. A `need`ed one that is missing, or
 * a value that does not fit, is an error: false. Otherwise true, and the value untouched when
 * missing. */
bool tw_xml_number(struct tw_xml *xml, const char *name, bool need, uint64_t most, uint64_t *value);
bool tw_xml_index(struct tw_xml *xml, const char *name, bool need, uint32_t *value);
bool tw_xml_text(struct tw_xml *xml, const char *name, bool need, char *value, size_t bytes);
/** One of the names that name_of gives from 0 to NULL. */
bool tw_xml_choice(struct tw_xml *xml, const char *name, const char *(*name_of)(unsigned),
                   uint8_t *value);
/** All have been taken, or an error. */
bool tw_xml_taken(struct tw_xml *xml);

#endif
