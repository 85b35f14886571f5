/// POST …:cancel.
package struct TransferCancel: Codable, Sendable, Equatable, StrictlyRead {
    /// Whether what a download received is kept for :restart. Default: yes.
    package var keepResumeData: Bool?

    package init(
        keepResumeData: Bool? = nil
    ) {
        self.keepResumeData = keepResumeData
    }

    package static let members = [
        "keepResumeData"
    ]
}
