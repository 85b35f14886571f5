/// One event of a stream of them (WHATWG HTML §9.2).
package struct ServerSentEvent: Sendable, Equatable {
    /// `message` where the stream does not say.
    package var type: String
    /// The lines of its data, with LF between them.
    package var data: [UInt8]
    /// The last id up to here; empty where there was none.
    package var lastID: String

    package init(type: String, data: [UInt8], lastID: String) {
        self.type = type
        self.data = data
        self.lastID = lastID
    }
}
