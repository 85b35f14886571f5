import Foundation

/// A delegate by the protocols that it has, looked up once.
final class DelegateFace: Sendable {
    let delegate: any URLSessionDelegate
    let task: (any URLSessionTaskDelegate)?
    let data: (any URLSessionDataDelegate)?
    let download: (any URLSessionDownloadDelegate)?
    let stream: (any URLSessionStreamDelegate)?
    let webSocket: (any URLSessionWebSocketDelegate)?
    let traits: DelegateTraits

    init(_ delegate: any URLSessionDelegate) {
        self.delegate = delegate
        self.task = delegate as? any URLSessionTaskDelegate
        self.data = self.task == nil ? nil : delegate as? any URLSessionDataDelegate
        self.download = self.task == nil ? nil : delegate as? any URLSessionDownloadDelegate
        self.stream = self.task == nil ? nil : delegate as? any URLSessionStreamDelegate
        self.webSocket = self.task == nil ? nil : delegate as? any URLSessionWebSocketDelegate
        self.traits = DelegateTraits.of(delegate)
    }

    /// Whether the method may be there: `false` once it is known to be left out, or where its protocol is missing.
    func mayAnswer(_ method: DelegateMethod) -> Bool {
        self.has(method) && self.traits.answers(method) ?? true
    }

    private func has(_ method: DelegateMethod) -> Bool {
        switch method {
        case .becameInvalid, .sessionChallenge, .sessionChallengeAsync: true
        case .createdTask, .waitsForConnectivity, .redirection, .redirectionAsync, .taskChallenge, .taskChallengeAsync,
            .newBodyStream, .newBodyStreamAsync, .sentBody, .informationalResponse, .metrics, .completion:
            self.task != nil
        case .response, .responseAsync, .becameDownload, .becameStream, .data, .cacheProposal, .cacheProposalAsync:
            self.data != nil
        case .wroteData, .resumedAtOffset, .finishedDownload: self.download != nil
        case .readClosed, .writeClosed, .betterRoute, .capturedStreams: self.stream != nil
        case .webSocketOpened, .webSocketClosed: self.webSocket != nil
        }
    }

    /// Calls a method that only tells.
    /// - Returns: whether the delegate has it.
    func tell(_ method: DelegateMethod, _ body: () -> Void) -> Bool {
        switch self.traits.answers(method) {
        case true?:
            body()
            return true
        case false?: return false
        case nil:
            let answers = LeftOut.watch(body)
            self.traits.showed(method, answers: answers)
            return answers
        }
    }

    /// Calls an asynchronous method.
    /// - Returns: `nil` where the delegate does not have it.
    func ask<Answer>(_ method: DelegateMethod, _ body: () async -> Answer) async -> Answer? {
        guard self.mayAnswer(method) else { return nil }
        let answer = await LeftOut.watch(body)
        self.traits.showed(method, answers: answer != nil)
        return answer
    }
}
