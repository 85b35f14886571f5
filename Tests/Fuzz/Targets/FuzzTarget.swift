/// Decoders of bytes from outside, each with its invariant for any bytes: events or one violation, the same for every
/// split, in bounded memory.
package enum FuzzTarget: String, CaseIterable, Sendable {
    case cacheFields = "cache-fields"
    case challenges
    case chunkedBodies = "chunked-bodies"
    case clientHello = "client-hello"
    case configuration
    case contentCodings = "content-codings"
    case cookies
    case extensions
    case frames
    case inflater
    case proxyProtocol = "proxy-protocol"
    case records
    case redisReplies = "redis-replies"
    case requests
    case responseHeads = "response-heads"
    case responses
    case resumeData = "resume-data"
    case roomClients = "room-clients"
    case uploadData = "upload-data"
    case webTokens = "web-tokens"

    /// - Throws: what of it does not hold for these bytes. What traps is not caught.
    package func check(_ bytes: [UInt8]) throws(InvariantViolation) {
        switch self {
        case .cacheFields: try CacheFieldsCheck.run(bytes)
        case .challenges: try ChallengesCheck.run(bytes)
        case .chunkedBodies: try ChunkedBodiesCheck.run(bytes)
        case .clientHello: try ClientHelloCheck.run(bytes)
        case .configuration: try ConfigurationCheck.run(bytes)
        case .contentCodings: try ContentCodingsCheck.run(bytes)
        case .cookies: try CookiesCheck.run(bytes)
        case .extensions: try ExtensionsCheck.run(bytes)
        case .frames: try FramesCheck.run(bytes)
        case .inflater: try InflaterCheck.run(bytes)
        case .proxyProtocol: try ProxyProtocolCheck.run(bytes)
        case .records: try RecordsCheck.run(bytes)
        case .redisReplies: try RedisRepliesCheck.run(bytes)
        case .requests: try RequestsCheck.run(bytes)
        case .responseHeads: try ResponseHeadsCheck.run(bytes)
        case .responses: try ResponsesCheck.run(bytes)
        case .resumeData: try ResumeDataCheck.run(bytes)
        case .roomClients: try RoomClientsCheck.run(bytes)
        case .uploadData: try UploadDataCheck.run(bytes)
        case .webTokens: try WebTokensCheck.run(bytes)
        }
    }
}
