#include "CInspectorPage.h"

// #embed belongs to C23; clang supports it in every C, with a warning.
#pragma clang diagnostic ignored "-Wc23-extensions"

static const uint8_t api_js[] = {
#embed "Page/api.js"
};
static const uint8_t breakpoints_js[] = {
#embed "Page/breakpoints.js"
};
static const uint8_t cache_js[] = {
#embed "Page/cache.js"
};
static const uint8_t chart_js[] = {
#embed "Page/chart.js"
};
static const uint8_t chips_js[] = {
#embed "Page/chips.js"
};
static const uint8_t columnmenu_js[] = {
#embed "Page/columnmenu.js"
};
static const uint8_t columns_js[] = {
#embed "Page/columns.js"
};
static const uint8_t comment_js[] = {
#embed "Page/comment.js"
};
static const uint8_t compare_js[] = {
#embed "Page/compare.js"
};
static const uint8_t config_js[] = {
#embed "Page/config.js"
};
static const uint8_t connection_js[] = {
#embed "Page/connection.js"
};
static const uint8_t content_js[] = {
#embed "Page/content.js"
};
static const uint8_t copyas_js[] = {
#embed "Page/copyas.js"
};
static const uint8_t detail_js[] = {
#embed "Page/detail.js"
};
static const uint8_t difference_js[] = {
#embed "Page/difference.js"
};
static const uint8_t divider_js[] = {
#embed "Page/divider.js"
};
static const uint8_t dom_js[] = {
#embed "Page/dom.js"
};
static const uint8_t edit_js[] = {
#embed "Page/edit.js"
};
static const uint8_t feed_js[] = {
#embed "Page/feed.js"
};
static const uint8_t fields_js[] = {
#embed "Page/fields.js"
};
static const uint8_t filter_js[] = {
#embed "Page/filter.js"
};
static const uint8_t find_js[] = {
#embed "Page/find.js"
};
static const uint8_t gateway_js[] = {
#embed "Page/gateway.js"
};
static const uint8_t har_js[] = {
#embed "Page/har.js"
};
static const uint8_t held_js[] = {
#embed "Page/held.js"
};
static const uint8_t hex_js[] = {
#embed "Page/hex.js"
};
static const uint8_t icon_svg[] = {
#embed "Page/icon.svg"
};
static const uint8_t index_html[] = {
#embed "Page/index.html"
};
static const uint8_t jwt_js[] = {
#embed "Page/jwt.js"
};
static const uint8_t list_js[] = {
#embed "Page/list.js"
};
static const uint8_t live_js[] = {
#embed "Page/live.js"
};
static const uint8_t main_js[] = {
#embed "Page/main.js"
};
static const uint8_t messages_js[] = {
#embed "Page/messages.js"
};
static const uint8_t metrics_js[] = {
#embed "Page/metrics.js"
};
static const uint8_t order_js[] = {
#embed "Page/order.js"
};
static const uint8_t overview_js[] = {
#embed "Page/overview.js"
};
static const uint8_t pair_js[] = {
#embed "Page/pair.js"
};
static const uint8_t parse_js[] = {
#embed "Page/parse.js"
};
static const uint8_t past_js[] = {
#embed "Page/past.js"
};
static const uint8_t questions_js[] = {
#embed "Page/questions.js"
};
static const uint8_t record_js[] = {
#embed "Page/record.js"
};
static const uint8_t requests_js[] = {
#embed "Page/requests.js"
};
static const uint8_t rules_js[] = {
#embed "Page/rules.js"
};
static const uint8_t secrets_js[] = {
#embed "Page/secrets.js"
};
static const uint8_t services_js[] = {
#embed "Page/services.js"
};
static const uint8_t sides_js[] = {
#embed "Page/sides.js"
};
static const uint8_t spark_js[] = {
#embed "Page/spark.js"
};
static const uint8_t state_js[] = {
#embed "Page/state.js"
};
static const uint8_t style_css[] = {
#embed "Page/style.css"
};
static const uint8_t tokens_js[] = {
#embed "Page/tokens.js"
};
static const uint8_t waterfall_js[] = {
#embed "Page/waterfall.js"
};
static const uint8_t why_js[] = {
#embed "Page/why.js"
};

static const struct CInspectorFile files[] = {
    {"api.js", api_js, sizeof api_js},
    {"breakpoints.js", breakpoints_js, sizeof breakpoints_js},
    {"cache.js", cache_js, sizeof cache_js},
    {"chart.js", chart_js, sizeof chart_js},
    {"chips.js", chips_js, sizeof chips_js},
    {"columnmenu.js", columnmenu_js, sizeof columnmenu_js},
    {"columns.js", columns_js, sizeof columns_js},
    {"comment.js", comment_js, sizeof comment_js},
    {"compare.js", compare_js, sizeof compare_js},
    {"config.js", config_js, sizeof config_js},
    {"connection.js", connection_js, sizeof connection_js},
    {"content.js", content_js, sizeof content_js},
    {"copyas.js", copyas_js, sizeof copyas_js},
    {"detail.js", detail_js, sizeof detail_js},
    {"difference.js", difference_js, sizeof difference_js},
    {"divider.js", divider_js, sizeof divider_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"edit.js", edit_js, sizeof edit_js},
    {"feed.js", feed_js, sizeof feed_js},
    {"fields.js", fields_js, sizeof fields_js},
    {"filter.js", filter_js, sizeof filter_js},
    {"find.js", find_js, sizeof find_js},
    {"gateway.js", gateway_js, sizeof gateway_js},
    {"har.js", har_js, sizeof har_js},
    {"held.js", held_js, sizeof held_js},
    {"hex.js", hex_js, sizeof hex_js},
    {"icon.svg", icon_svg, sizeof icon_svg},
    {"index.html", index_html, sizeof index_html},
    {"jwt.js", jwt_js, sizeof jwt_js},
    {"list.js", list_js, sizeof list_js},
    {"live.js", live_js, sizeof live_js},
    {"main.js", main_js, sizeof main_js},
    {"messages.js", messages_js, sizeof messages_js},
    {"metrics.js", metrics_js, sizeof metrics_js},
    {"order.js", order_js, sizeof order_js},
    {"overview.js", overview_js, sizeof overview_js},
    {"pair.js", pair_js, sizeof pair_js},
    {"parse.js", parse_js, sizeof parse_js},
    {"past.js", past_js, sizeof past_js},
    {"questions.js", questions_js, sizeof questions_js},
    {"record.js", record_js, sizeof record_js},
    {"requests.js", requests_js, sizeof requests_js},
    {"rules.js", rules_js, sizeof rules_js},
    {"secrets.js", secrets_js, sizeof secrets_js},
    {"services.js", services_js, sizeof services_js},
    {"sides.js", sides_js, sizeof sides_js},
    {"spark.js", spark_js, sizeof spark_js},
    {"state.js", state_js, sizeof state_js},
    {"style.css", style_css, sizeof style_css},
    {"tokens.js", tokens_js, sizeof tokens_js},
    {"waterfall.js", waterfall_js, sizeof waterfall_js},
    {"why.js", why_js, sizeof why_js},
};

const struct CInspectorFile *cinspector_file(size_t place) {
    return place < sizeof files / sizeof *files ? &files[place] : NULL;
}
