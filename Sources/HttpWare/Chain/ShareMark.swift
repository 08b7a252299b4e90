/// A field that is added to the response, so that the client keeps using the same share.
struct ShareMark {
    let name: FieldName
    let value: [UInt8]
}
