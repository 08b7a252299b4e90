/// What a client is given with the response, so that it stays with its share.
struct ShareMark {
    let name: FieldName
    let value: [UInt8]
}
