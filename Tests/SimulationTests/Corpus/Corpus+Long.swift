extension CorpusCase {
    /// Worlds of eighty steps, where one thing comes on top of another.
    static let long = [
        CorpusCase(
            name: "an edit of a record whose lost edit came back to find it deleted brings nobody back (T17)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addProject 13829076
                flow
                server clone
                0 edit renameProject 6065745
                flow
                0 edit addProject 1
                server exchange
                0 edit renameProject 6065745
                1 edit deleteProject 1306147
                """),
        CorpusCase(
            name: "an edit of a row that waits for its place is one of the deleted record, too (I8)",
            app: "task",
            script: """
                world seed 1 devices 3 users 1 page 50
                pass 2
                0 edit addProject 1
                server kill 8
                flow
                1 edit moveSlug 10244584
                0 edit moveSlug 372634
                1 edit replaceProject 16496012
                """),
        CorpusCase(
            name: "an edit on top of what another copy of the file was told is older than a deletion",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                pass 0
                pass 0
                0 edit replaceProject 7684697
                pass 0
                pass 0
                0 edit replaceProject 6497919
                pass 0 lost
                0 clone 1
                1 edit replaceProject 8775451
                """),
        CorpusCase(
            name: "so is one on top of what was refused there, and the server never had",
            app: "ledger",
            script: """
                world seed 1 devices 3 users 1 page 50
                0 edit cancel 0
                0 edit correct 0
                pass 0
                pass 0
                1 edit correct 0
                pass 0
                2 clone 1
                1 edit annotate 0
                0 edit transfer 1
                pass 0
                0 clone 2
                pass 0
                pass 2
                user 0 scope 0 none
                flow
                1 sync
                user 0 scope 0 readWrite
                flow
                2 edit correct 5273844
                1 edit cancel 6840611
                """),
        CorpusCase(
            name: "what was made below a parent goes where a snapshot tells that the parent has (I4)",
            app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 50
                pass 0
                0 kill after /sync/snapshot
                0 edit transfer 1
                pass 1
                0 edit annotate 0
                flow
                1 edit cancel 9690860
                """),
        CorpusCase(
            name: "a verdict that no checkpoint tells of yet is told: a copied server notices (I4, I11)",
            app: "order",
            script: """
                world seed 1 devices 3 users 1 page 1
                flow
                2 edit orderAtOnce 0
                0 edit order 0
                1 edit order 0
                pass 0
                pass 1
                server clone
                1 edit orderAtOnce 0
                pass 1
                pass 1
                pass 0
                pass 0
                pass 1
                pass 1
                server exchange
                """),
        CorpusCase(
            name: "a row of a history that is lost stands until its device has heard of the loss",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                1 edit replaceProject 1
                server kill 2
                flow
                2 edit replaceProject 1
                server clone
                wait 2000
                pass 0
                pass 0
                server exchange
                """),
        CorpusCase(
            name: "what a device wrote into a history before it was lost need not be written twice",
            app: "task",
            script: """
                world seed 1 devices 3 users 1 page 50
                flow
                0 edit replaceProject 15310485
                flow
                3 edit replaceProject 0
                1 edit addProject 10949538
                pass 1
                server restore
                """),
        CorpusCase(
            name: "a reference to a deleted parent comes back empty",
            app: "shelf",
            script: """
                world seed 1 devices 3 users 1 page 50
                2 edit addBox 0
                flow
                1 edit addItem 10321616
                flow
                server restore
                2 edit deleteBox 0
                wait 31000
                pass 2
                flow
                server restore
                """),
        CorpusCase(
            name: "an edit that came before a lost deletion wins, where edits win",
            app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit listAdd 0
                flow
                server clone
                0 edit listDelete 0
                flow
                1 edit listSecond 0
                server exchange
                """),
        CorpusCase(
            name: "where the later edit wins, one that sets what is there already is one",
            app: "notebook",
            script: """
                world seed 1 devices 2 users 1 page 50
                pass 0
                1 edit moodAdd 0
                1 clone 0
                2 edit moodFirst 0
                pass 0
                pass 2
                1 edit moodSecond 0
                """),
        CorpusCase(
            name: "a server that takes little at once is in sync in time",
            app: "ledger",
            script: """
                world seed 1 devices 3 users 1 page 50
                1 edit annotate 0
                1 edit transfer 0
                2 edit cancel 0
                1 edit cancel 0
                2 edit annotate 0
                2 edit cancel 0
                0 edit transfer 1
                2 edit correct 0
                1 edit transfer 1
                0 edit annotate 0
                flow
                server node 0 settings 273964
                0 edit cancel 1
                server restore
                1 edit correct 0
                0 edit correct 0
                0 edit transfer 0
                0 edit correct 12543884
                """),
        CorpusCase(
            name: "children stay where a snapshot lacks their parent after a loss: it is on its way back (I11)",
            app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit transfer 1
                flow
                1 edit annotate 0
                flow
                server restore
                1 sync
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                """),
    ]
}
