extension ContentCoding: OptionWord {}
