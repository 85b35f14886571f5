import Foundation

/// Which networks and names a request or a session may use.
package struct NetworkPermissions: Codable, Hashable, Sendable {
    package var allowsCellular = true
    package var allowsExpensive = true
    package var allowsConstrained = true
    package var requiresDNSSEC = false

    package init() {}
}

/// An HTTP request as the daemon stores and sends it.
package struct TransferRequest: Codable, Hashable, Sendable {
    /// Largest body of a download's request, in bytes: longer ones are sent by upload tasks, from files.
    package static let bodyLimit = 1 << 20
    /// Most bytes of URL and fields.
    package static let headLimit = 256 << 10

    package var url: String
    package var method: String
    package var fields: [String: String]
    package var body: Data?
    /// Idle timeout in seconds; `nil` for the session's.
    package var timeout: Double?
    /// Raw value of `URLRequest.NetworkServiceType`.
    package var serviceType: UInt
    package var permissions = NetworkPermissions()

    package init(
        url: String, method: String = "GET", fields: [String: String] = [:], body: Data? = nil, timeout: Double? = nil,
        serviceType: UInt = 0
    ) {
        self.url = url
        self.method = method
        self.fields = fields
        self.body = body
        self.timeout = timeout
        self.serviceType = serviceType
    }

    /// Whether the program asks for a part of the resource (RFC 9110 §14.2).
    package var asksForPart: Bool { self.fields.keys.contains { $0.lowercased() == "range" } }
}

/// The head of a response.
package struct TransferResponse: Codable, Hashable, Sendable {
    package var url: String
    package var status: Int
    package var version: String
    package var fields: [String: String]

    package init(url: String, status: Int, version: String, fields: [String: String]) {
        self.url = url
        self.status = status
        self.version = version
        self.fields = fields
    }
}

/// Why a transfer failed: a `URLError` without objects that cannot leave a process.
package struct TransferError: Codable, Hashable, Sendable, Error {
    /// Raw value of `URLError.Code`.
    package var code: Int
    package var text: String
    package var url: String?
    /// Raw value of `URLError.BackgroundTaskCancelledReason`.
    package var cancelledReason: Int?
    /// `true` if `SessionSettings.permittedTargets` permits none of the server's addresses.
    package var refusesAddresses: Bool?

    package init(code: Int, text: String, url: String? = nil, cancelledReason: Int? = nil) {
        self.code = code
        self.text = text
        self.url = url
        self.cancelledReason = cancelledReason
    }
}

/// The content of a download that a file has already.
package struct PartialDownload: Codable, Hashable, Sendable {
    /// Of the response that began the file; for `If-Range`. Exactly one is set.
    package var entityTag: String?
    package var lastModified: String?
    /// Bytes that are known to be on the disk, whatever happened to the machine.
    package var durable: Int64
    /// Size of the whole content; `nil` if unknown.
    package var total: Int64?
    /// Of the boot in which the file was written: within it every byte of the file counts, not only the durable ones.
    package var boot: String

    package init(entityTag: String?, lastModified: String?, durable: Int64, total: Int64?, boot: String) {
        self.entityTag = entityTag
        self.lastModified = lastModified
        self.durable = durable
        self.total = total
        self.boot = boot
    }
}

/// A question of a server or a proxy for a user and a password.
package struct TransferChallenge: Codable, Hashable, Sendable {
    package var host: String
    package var port: Int
    /// `http` or `https`, or a proxy's kind.
    package var scheme: String?
    package var realm: String?
    package var method: String
    package var isProxy: Bool
    /// Credentials refused so far.
    package var failures: Int
    /// The 401 or 407.
    package var response: TransferResponse?

    package init(
        host: String, port: Int, scheme: String?, realm: String?, method: String, isProxy: Bool, failures: Int
    ) {
        self.host = host
        self.port = port
        self.scheme = scheme
        self.realm = realm
        self.method = method
        self.isProxy = isProxy
        self.failures = failures
    }

    /// Whether the protection space is the same.
    package func isOfSpace(of other: TransferChallenge) -> Bool {
        self.isOfServer(of: other) && self.realm == other.realm
    }

    /// Whether the protection space is the same but for its realm.
    fileprivate func isOfServer(of other: TransferChallenge) -> Bool {
        self.host == other.host && self.port == other.port && self.scheme == other.scheme
            && self.method == other.method && self.isProxy == other.isProxy
    }

    package var withoutResponse: TransferChallenge {
        var challenge = self
        challenge.response = nil
        return challenge
    }
}

/// The answer to a challenge.
package enum TransferChallengeAnswer: Codable, Hashable, Sendable {
    case credential(user: String, password: String)
    /// As without a delegate: the configured account of a proxy or of the URL is used, if there is one.
    case defaultHandling
    /// The 401 or 407 response is the result.
    case withoutCredential
    /// The next scheme that the server offers is asked about.
    case rejectProtectionSpace
    case cancel
}

/// A challenge that the program has answered, without its response.
package struct AnsweredChallenge: Codable, Hashable, Sendable {
    package var challenge: TransferChallenge
    package var answer: TransferChallengeAnswer

    fileprivate var isCredential: Bool {
        if case .credential = self.answer { true } else { false }
    }
}

/// The answer to `willBeginDelayedRequest`.
package enum DelayedRequestAnswer: Codable, Hashable, Sendable {
    case proceed
    case replace(TransferRequest)
    case cancel
}

/// What a program may change of a transfer at any time.
package struct TransferAttributes: Codable, Hashable, Sendable {
    /// Longest label in bytes.
    package static let labelLimit = 256 << 10

    package var label: String?
    /// 0 to 1.
    package var priority: Float
    package var earliestBegin: Date?
    /// In bytes; -1 if unknown.
    package var expectedToSend: Int64
    package var expectedToReceive: Int64

    package init(
        label: String? = nil, priority: Float = 0.5, earliestBegin: Date? = nil, expectedToSend: Int64 = -1,
        expectedToReceive: Int64 = -1
    ) {
        self.label = label
        self.priority = priority
        self.earliestBegin = earliestBegin
        self.expectedToSend = expectedToSend
        self.expectedToReceive = expectedToReceive
    }
}

/// Bytes transferred so far. Totals are -1 if unknown.
package struct TransferCounts: Codable, Hashable, Sendable {
    package var sent: Int64 = 0
    package var totalToSend: Int64 = 0
    package var received: Int64 = 0
    package var totalToReceive: Int64 = -1

    package init(sent: Int64 = 0, totalToSend: Int64 = 0, received: Int64 = 0, totalToReceive: Int64 = -1) {
        self.sent = sent
        self.totalToSend = totalToSend
        self.received = received
        self.totalToReceive = totalToReceive
    }
}

/// One transfer of a session, as the journal has it.
package struct TransferRecord: Codable, Hashable, Sendable {
    package enum Kind: String, Codable, Hashable, Sendable {
        case download
        case upload
    }

    package enum Phase: Codable, Hashable, Sendable {
        /// Starts when the queue and its conditions allow it, and not before `until`.
        case waiting(until: Date?)
        /// Needs the program's answer to `willBeginDelayedRequest`.
        case asksForRequest
        case running
        /// Needs the program's answer to a challenge.
        case asksForCredential(TransferChallenge)
    }

    /// The task's identifier, unique in the session.
    package var identifier: Int
    package var kind: Kind
    package var originalRequest: TransferRequest
    /// As changed by `willBeginDelayedRequest`.
    package var currentRequest: TransferRequest
    /// Name of the copied body in the session's folder.
    package var body: String?
    package var attributes: TransferAttributes
    package var isSuspended = true
    package var phase = Phase.waiting(until: nil)
    /// 1 for the first transfer that was created while the program ran for launch events only; 0 for others.
    package var backgroundOrdinal = 0
    /// When the transfer was first resumed: `timeoutIntervalForResource` counts from here.
    package var begun: Date?
    /// Attempts that failed in a row without any progress.
    package var failures = 0
    package var hasAskedForRequest = false
    package var partial: PartialDownload?
    /// Of an upload that its server can continue: what the library's `uploadTask(withResumeData:)` takes. In the journal
    /// before it is used, and replaced whenever the server names another upload resource.
    package var uploadResumption: Data?
    /// For the next attempts, each in its protection space alone; `nil` for none.
    package private(set) var answers: [AnsweredChallenge]?
    package var response: TransferResponse?
    package var counts = TransferCounts()

    package init(
        identifier: Int, kind: Kind, request: TransferRequest, body: String? = nil,
        attributes: TransferAttributes = TransferAttributes(), counts: TransferCounts = TransferCounts()
    ) {
        self.identifier = identifier
        self.kind = kind
        self.originalRequest = request
        self.currentRequest = request
        self.body = body
        self.attributes = attributes
        self.counts = counts
    }

    /// Most answers that are kept, for a server that names another realm each time.
    private static let answerLimit = 16

    package func answer(to challenge: TransferChallenge) -> AnsweredChallenge? {
        self.answers?.last { $0.challenge.isOfSpace(of: challenge) }
    }

    /// - Parameter answer: `nil` if there is none any more.
    package mutating func setAnswer(_ answer: TransferChallengeAnswer?, to challenge: TransferChallenge) {
        var answers = (self.answers ?? []).filter { !$0.challenge.isOfSpace(of: challenge) }
        if let answer {
            answers.append(AnsweredChallenge(challenge: challenge.withoutResponse, answer: answer))
        }
        self.answers = answers.isEmpty ? nil : answers.suffix(Self.answerLimit)
    }

    /// The challenge of an attempt as the program is asked about it: each attempt counts its failures from 0.
    package func question(_ challenge: TransferChallenge) -> TransferChallenge {
        var question = challenge
        if let answered = self.answer(to: challenge) {
            question.failures += answered.challenge.failures
        } else {
            // A program that gives up after some failures must do so with a server that names another realm each time.
            let others = (self.answers ?? []).filter { $0.isCredential && $0.challenge.isOfServer(of: challenge) }
            question.failures = max(question.failures, others.count)
        }
        return question
    }

    /// Name of the file, in the session's folder, with the received content.
    package var contentName: String { "\(self.identifier).content" }

    /// Without bodies, upload resumptions (of which an empty one is left) and secrets, for programs that list transfers.
    package var summary: TransferRecord {
        var summary = self
        summary.originalRequest.body = nil
        summary.currentRequest.body = nil
        summary.uploadResumption = self.uploadResumption.map { _ in Data() }
        summary.answers = nil
        return summary
    }
}

/// How a transfer ended: the message that the program gets exactly once.
package struct TransferEnd: Codable, Hashable, Sendable {
    package var transfer: TransferRecord
    /// Name, in the session's folder, of the downloaded content or of the response to an upload.
    package var file: String?
    package var error: TransferError?
    package var ended: Date

    package init(transfer: TransferRecord, file: String?, error: TransferError?, ended: Date) {
        self.transfer = transfer
        self.file = file
        self.error = error
        self.ended = ended
    }
}

/// How the daemon starts a program for the events of its session.
package struct LaunchCommand: Codable, Hashable, Sendable {
    /// Environment variable of a started program: the session's identifier.
    package static let variable = "SLUICE_LAUNCHED_FOR_SESSION"

    /// Absolute path of the executable.
    package var executable: String
    package var arguments: [String]
    package var environment: [String: String]
    package var directory: String

    package init(executable: String, arguments: [String], environment: [String: String], directory: String) {
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
        self.directory = directory
    }
}

/// The settings of a session that its transfers need outside of the program.
package struct SessionSettings: Codable, Hashable, Sendable {
    package enum ProxyValue: Codable, Hashable, Sendable {
        case number(Int)
        case text(String)
        case list([String])
    }

    /// In seconds, as all timeouts.
    package var requestTimeout: Double = 60
    package var resourceTimeout: Double = 7 * 86_400
    package var fields: [String: String] = [:]
    package var connectionsPerHost = 6
    /// Numbers on the wire.
    package var lowestTLSVersion: UInt16 = 0x0303
    package var highestTLSVersion: UInt16 = 0x0304
    package var serviceType: UInt = 0
    package var permissions = NetworkPermissions()
    package var certificateAuthorities: Data?
    package var unixSocketPath: String?
    package var assumesHTTP2 = false
    /// The only addresses that connections are made to, redirects included, in the words of the gateway's key
    /// `control.targets`; `nil` permits all. What the daemon does not understand permits nothing.
    package var permittedTargets: [String]?
    /// `nil` for the standard of the configuration.
    package var resumesUploads: Bool?
    /// Raw value of `URLSessionConfiguration.MultipathServiceType`; `nil` for none.
    package var multipath: Int?
    /// `nil` for the proxies of `proxyVariables`.
    package var proxies: [String: ProxyValue]?
    /// The variables of the program's environment that name proxies; `nil` for those of the daemon's.
    package var proxyVariables: [String: String]?
    package var isDiscretionary = false
    package var sendsLaunchEvents = true
    /// Whether the program has a say in `willBeginDelayedRequest`.
    package var asksForDelayedRequests = false
    package var launch: LaunchCommand?

    package init() {}
}
