/// What a client shows of itself when it is asked.
enum ChosenIdentity {
    /// The caller was not asked or has not answered.
    case undecided
    case without
    case given(TLSIdentity)
}
