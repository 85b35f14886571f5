import URLLoading

/// Actions on a transfer in addition to loading it.
struct TransferActions: Sendable {
    /// The file that the content goes to.
    let output: String?
    /// The file that a streamed body comes from.
    let stream: String?
    let disposition: URLSession.ResponseDisposition
    let stayHere: Bool
    let cancelAfter: Int64?
    /// The file that resume data go to.
    let resumeData: String?
}
