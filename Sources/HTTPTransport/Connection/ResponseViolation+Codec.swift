import NIOHTTP1

extension ResponseViolation {
    /// What the codec refused.
    init(_ error: HTTPParserError) {
        switch error {
        case .headerOverflow: self = .headTooLarge
        case .invalidVersion, .invalidStatus, .invalidConstant: self = .statusLine
        case .unexpectedContentLength: self = .twoFramings
        case .invalidContentLength: self = .contentLength
        case .invalidChunkSize: self = .chunk
        case .invalidHeaderToken: self = .fieldName
        case .lfExpected, .strictModeAssertion: self = .bareLineBreak
        case .closedConnection: self = .unsolicited
        default: self = .syntax("\(error)")
        }
    }

    init(_ error: NIOHTTPDecoderError) {
        self = error == .unsolicitedResponse ? .unsolicited : .syntax("\(error)")
    }
}
