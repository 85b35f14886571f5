import NIOHTTP1

extension ResponseViolation {
    /// What the codec refused.
    /// - Parameter inHead: whether the head was not complete. Its lines were looked at before, so that what the codec has
    ///   no name for is, there, a second statement of the length.
    init(_ error: HTTPParserError, inHead: Bool) {
        switch error {
        case .headerOverflow: self = .headTooLarge
        case .invalidVersion, .invalidStatus, .invalidConstant: self = .statusLine
        case .unexpectedContentLength: self = .twoFramings
        case .invalidContentLength: self = .contentLength
        case .invalidChunkSize: self = .chunk
        case .invalidHeaderToken: self = .fieldName
        case .lfExpected, .strictModeAssertion: self = .bareLineBreak
        case .closedConnection: self = .unsolicited
        case .unknown: self = inHead ? .twoFramings : .chunk
        default: self = .syntax("\(error)")
        }
    }

    init(_ error: NIOHTTPDecoderError) {
        self = error == .unsolicitedResponse ? .unsolicited : .syntax("\(error)")
    }
}
