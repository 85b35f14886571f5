import Foundation

/// The protocol between programs and the daemon: each message is JSON behind its length. Both sides refuse another version.
package enum TransferProtocol {
    package static let version = 3
    /// Messages about ended transfers that are sent before the first of them is acknowledged.
    package static let messageWindow = 64
    /// Most transfers of one session that have not ended.
    package static let transferLimit = 10_000
}

/// From a program to the daemon. The first message is `attach` or `observe`.
package enum ClientMessage: Codable, Hashable, Sendable {
    case attach(SessionAttachment)
    /// Takes no session: for `sluice transfers`.
    case observe(version: Int)
    /// Answered by `DaemonMessage.reply` with the same number, once the journal has it. Repeating it changes nothing.
    case request(number: Int, SessionRequest)
    /// As `request`, of an observer: for a session of another program.
    case steer(number: Int, session: String, task: Int, ControlVerb)
}

/// Takes a session: no other program gets it until the connection ends.
package struct SessionAttachment: Codable, Hashable, Sendable {
    package var version: Int
    package var identifier: String
    package var settings: SessionSettings
    /// Whether the daemon started the program, and no person.
    package var isLaunchedForEvents: Bool
    /// Whether the same session was attached before by the same program: it has not restarted.
    package var isReattachment: Bool

    package init(
        version: Int = TransferProtocol.version, identifier: String, settings: SessionSettings,
        isLaunchedForEvents: Bool, isReattachment: Bool
    ) {
        self.version = version
        self.identifier = identifier
        self.settings = settings
        self.isLaunchedForEvents = isLaunchedForEvents
        self.isReattachment = isReattachment
    }
}

package enum SessionRequest: Codable, Hashable, Sendable {
    /// Settings of the session that have changed; for attempts that begin from now on, except `permittedTargets`, which
    /// counts for every connection from now on.
    case configure(SessionSettings)
    /// A new transfer, suspended.
    case create(TransferRecord)
    case change(task: Int, TransferAttributes)
    case resume(task: Int)
    case suspend(task: Int)
    /// - Parameter reason: raw value of `URLError.BackgroundTaskCancelledReason`; `nil` if the program itself cancels.
    case cancel(task: Int, reason: Int?)
    /// Changes nothing if the daemon asks something else by now.
    case answerChallenge(task: Int, TransferChallenge, TransferChallengeAnswer)
    case answerRequest(task: Int, DelayedRequestAnswer)
    /// The program has got the messages up to this one.
    case acknowledge(sequence: Int)
}

package enum ControlVerb: String, Codable, Hashable, Sendable {
    case resume
    case suspend
    case cancel
}

/// From the daemon to a program.
package enum DaemonMessage: Codable, Hashable, Sendable {
    /// The session is the program's. Its transfers follow, then `ready`.
    case attached(AttachedSession)
    case transfer(session: String, TransferRecord)
    /// All transfers were sent.
    case ready
    /// The daemon closes the connection.
    case refused(Refusal)
    case reply(number: Int, RequestOutcome)
    /// A transfer ended; to be acknowledged.
    case ended(sequence: Int, TransferEnd)
    case progress(session: String, task: Int, TransferCounts)
    /// A transfer begins again at this offset of its file, or from 0.
    case resumed(task: Int, offset: Int64, total: Int64)
    /// To observers: the transfer is over.
    case removed(session: String, task: Int, TransferError?)
}

package struct AttachedSession: Codable, Hashable, Sendable {
    /// Largest identifier of a task so far.
    package var lastIdentifier: Int
    /// Where the session's files are.
    package var folder: String
    /// Ends that no program has acknowledged yet.
    package var waitingMessages: Int
    /// Whether a transfer waits for an answer.
    package var hasQuestions: Bool

    package init(lastIdentifier: Int, folder: String, waitingMessages: Int, hasQuestions: Bool) {
        self.lastIdentifier = lastIdentifier
        self.folder = folder
        self.waitingMessages = waitingMessages
        self.hasQuestions = hasQuestions
    }
}

package enum Refusal: String, Codable, Hashable, Sendable, Error {
    /// Another program has the session.
    case inUse
    /// Program and daemon speak different versions of the protocol.
    case version
    /// Too many programs or sessions.
    case busy
    /// The message is not valid.
    case malformed
}

package enum RequestOutcome: Codable, Hashable, Sendable {
    case done
    /// There is no such transfer: it has ended.
    case unknownTransfer
    case refused(TransferError)
}
