import WebSocketProtocol

/// The sender of the frames and the negotiated parameters, from one byte: the lowest bit is the sender, two bits the
/// compression, one bit the limit.
struct FrameSetting {
    let sender: Role
    let deflate: PermessageDeflateParameters?
    /// In bytes of a message.
    let limit: Int

    var receiver: Role { self.sender == .client ? .server : .client }

    init(_ byte: UInt8) {
        self.sender = byte & 1 == 0 ? .client : .server
        // With full windows: when a reference beyond a smaller window is detected depends on the split (see
        // `InflaterCheck`).
        self.deflate =
            switch byte >> 1 & 3 {
            case 1: PermessageDeflateParameters()
            case 2: PermessageDeflateParameters(serverNoContextTakeover: true, clientNoContextTakeover: true)
            case 3: PermessageDeflateParameters(clientNoContextTakeover: true)
            default: nil
            }
        // More than one event inflates, so that messages of several occur; not much more, for the sake of time.
        self.limit = byte >> 3 & 1 == 0 ? DeflateContext.outputCapacity + 1000 : 300
    }
}
