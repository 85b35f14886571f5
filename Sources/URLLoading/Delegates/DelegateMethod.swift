/// The messages that a delegate may leave out: whether it did decides who is asked next.
enum DelegateMethod: Int, CaseIterable {
    case becameInvalid
    case sessionChallenge
    case sessionChallengeAsync
    case createdTask
    case waitsForConnectivity
    case redirection
    case redirectionAsync
    case taskChallenge
    case taskChallengeAsync
    case newBodyStream
    case newBodyStreamAsync
    case sentBody
    case informationalResponse
    case metrics
    case completion
    case response
    case responseAsync
    case becameDownload
    case becameStream
    case data
    case cacheProposal
    case cacheProposalAsync
    case wroteData
    case resumedAtOffset
    case finishedDownload
    case readClosed
    case writeClosed
    case betterRoute
    case capturedStreams
    case webSocketOpened
    case webSocketClosed

    var bit: UInt64 { 1 << UInt64(self.rawValue) }
}
