import ControlAPI
import Foundation

/// Why something was not done, with the next thing to try.
package struct ControlFailure: Error, Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        /// A value that was given is not valid: 400, 422 and the like. Wrong usage, as what the command line refuses itself.
        case wrongRequest = "wrong-request"
        /// A configuration, or a part of one, that is not right.
        case wrongConfiguration = "wrong-configuration"
        /// The gateway does not take what was to be sent, for its length or its type: 413, 415.
        case unsendableInput = "unsendable-input"
        /// There is no such thing, or it is over: 404, 410.
        case unknown
        /// Not in the state in which it is: 409, 412, 428.
        case conflict
        /// 401, 403, 421.
        case notAllowed = "not-allowed"
        /// It may be done later: 429, 503, 504.
        case later
        /// What the gateway talks to for us refused or failed: 502.
        case peer
        /// The gateway's fault, or ours: 500.
        case fault
        /// No control plane answers.
        case noConnection = "no-connection"
        /// TLS with the control plane.
        case secure
        /// What answers is no control plane, or of another version.
        case nonsense
        /// Cancelled by us.
        case cancelled
        /// Waited in vain: not a failure of anybody.
        case nothingCame = "nothing-came"
    }

    package let kind: Kind
    /// One line, without a full stop.
    package let text: String
    /// What to do; empty where nothing can be said.
    package let remedy: String
    /// The problem document as it came.
    package var document: Data?
    package var problem: Problem?

    package init(_ kind: Kind, _ text: String, remedy: String = "") {
        self.kind = kind
        self.text = text
        self.remedy = remedy
    }

    package var line: String { self.remedy.isEmpty ? self.text : "\(self.text); \(self.remedy)" }
}
