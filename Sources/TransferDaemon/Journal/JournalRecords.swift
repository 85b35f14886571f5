import BackgroundTransfers
import Foundation

/// Record of a session in the journal, without its transfers and messages.
package struct SessionRecord: Codable, Hashable, Sendable {
    package var identifier: String
    package var settings: SessionSettings
    /// Largest identifier of a task so far.
    package var lastIdentifier = 0
    /// Of the last message; the first has 1.
    package var lastSequence = 0
    /// Whether the program runs only because the daemon started it.
    package var isLaunchedForEvents = false
    /// Transfers that were created while it did.
    package var backgroundTransfers = 0
    /// How often the program was started without taking a message since.
    package var launches = 0
    package var lastLaunch: Date?
    /// `true` if the session's own row was lost: its transfers wait for the settings of its program.
    package var needsSettings: Bool?

    package init(identifier: String, settings: SessionSettings) {
        self.identifier = identifier
        self.settings = settings
    }

    /// Whether the numbers are such that the daemon can calculate with them.
    var isInRange: Bool {
        [self.lastIdentifier, self.lastSequence, self.backgroundTransfers, self.launches].allSatisfy {
            0...TransferRecord.identifierLimit ~= $0
        }
    }
}

/// One row written to the journal, or removed from it. All changes of one event are written together.
package enum JournalChange: Codable, Hashable, Sendable {
    case session(SessionRecord)
    case removeSession(String)
    case transfer(session: String, TransferRecord)
    case removeTransfer(session: String, task: Int)
    case message(session: String, sequence: Int, TransferEnd)
    /// Those up to a sequence number.
    case removeMessages(session: String, through: Int)
}

/// How an attempt to carry out a transfer ended.
package enum AttemptEnd: Hashable, Sendable {
    /// - Parameter file: name of the content in the session's folder.
    case finished(TransferResponse, file: String?)
    /// - Parameter isTransient: whether a later attempt may succeed: the network failed, and not the request.
    case failed(TransferError, isTransient: Bool)
    case challenged(TransferChallenge)
}
