extension CorpusCase {
    /// Worlds whose server was put back, copied or killed.
    static let servers = [
        CorpusCase(
            name: "a server that is lost again while a device brings back what it had lost is told all (I11, I5)",
            app: "task",
            script: """
                world seed 1 devices 1 users 1 page 50
                2 edit replaceProject 1
                2 edit addProject 0
                flow
                server clone
                1 edit replaceProject 0
                flow
                server exchange
                1 edit moveSlug 6268170
                pass 0
                server restore
                """),
        CorpusCase(
            name: "what was lost twice is brought back, or its app is asked about it (I11)", app: "notebook",
            script: """
                world seed 1 devices 3 users 1 page 50 hurried
                0 edit moodDelete 0
                2 edit listAdd 0
                2 edit decisionAdd 10253903
                flow
                0 edit decisionFirst 13783425
                server restore
                flow
                server restore
                """),
        CorpusCase(
            name: "what was brought back to a server that had it may be lost by the next one (I11)", app: "ledger",
            script: """
                world seed 1 devices 1 users 1 page 50
                1 edit transfer 1
                server clone
                flow
                server exchange
                0 edit annotate 0
                pass 0
                server exchange
                flow
                server exchange
                """),
        CorpusCase(
            name: "an edit to what a lost operation had set is no part of that operation (I1)", app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addProject 0
                1 edit replaceProject 4927490
                flow
                server restore
                1 sync
                wait 31000
                0 edit moveSlug 1
                """),
        CorpusCase(
            name: "the first write of an empty server names its history, and begins no other one (I4)", app: "shelf",
            script: """
                world seed 1 devices 1 users 1 page 50
                server clone
                flow
                0 edit addBox 1
                0 edit moveBox 7088675
                flow
                server exchange
                0 edit deleteBox 1
                pass 0
                pass 0
                0 sync
                pass 0
                pass 0
                server exchange
                """),
        CorpusCase(
            name: "a second deletion is no part of the first one, which was lost (I1)", app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 edit addProject 0
                flow
                server backup
                0 edit deleteProject 0
                flow
                1 sync
                flow
                1 edit addProject 0
                flow
                0 sync
                flow
                server restore
                1 sync
                flow
                wait 31000
                0 edit deleteProject 0
                """),
        CorpusCase(
            name: "what was acknowledged in a lane that ends is told on, and its loss found (I2, I11)", app: "ledger",
            script: """
                world seed 1 devices 2 users 1 page 1 keyless
                1 edit annotate 0
                1 edit transfer 0
                1 edit annotate 0
                0 edit annotate 0
                1 edit transfer 1
                0 edit cancel 0
                1 edit annotate 0
                0 edit transfer 1
                1 edit transfer 0
                1 edit correct 0
                0 edit transfer 1
                flow
                1 edit annotate 0
                server node 0 settings 3060302
                0 edit transfer 1
                0 edit annotate 0
                0 edit transfer 1
                0 edit correct 1177529
                1 edit transfer 1
                0 edit annotate 0
                flow
                0 edit cancel 6915526
                server clone
                wait 2000
                0 sync
                0 edit cancel 2036042
                flow
                server exchange
                """),
        CorpusCase(
            name: "two servers that go on from one store are told apart, however often they take turns (I11, T19)",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 2
                0 edit addProject 3
                flow
                server clone
                1 edit addProject 4
                0 edit addProject 7
                flow
                server exchange
                0 edit addProject 5
                flow
                server exchange
                1 edit addProject 6
                0 sync
                flow
                server exchange
                """),
        CorpusCase(
            name: "a snapshot of a server that has less is not told as a lag behind the former one (I12)",
            app: "order",
            script: """
                world seed 1 devices 4 users 1 page 50
                flow
                server clone
                2 edit addCustomer 0
                wait 31000
                2 edit deleteCustomer 15466294
                flow
                server exchange
                3 kill 0
                server exchange
                wait 691200000
                server compact 7200000
                pass 0
                pass 1
                server exchange
                """),
        CorpusCase(
            name: "a delete may be made of a row of a history that is lost, and be the first of the next one",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit writeTask 3607059
                1 backup
                flow
                server restore
                0 edit deleteTask 3607059
                wait 31000
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0
                pass 0 lost
                1 restore
                """),
        CorpusCase(
            name: "of a record that stands twice one row may be deleted, and its shadow stay",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                0 sync
                server kill 2
                0 edit orderAtOnce 0
                pass 0
                pass 1
                pass 1
                pass 0
                pass 0
                pass 0
                pass 0
                0 edit deleteCustomer 12778926
                """),
        CorpusCase(
            name: "what two devices wrote alike is in the log once, and may be overwritten before both heard",
            app: "task",
            script: """
                world seed 1 devices 3 users 1 page 50
                flow
                0 edit replaceProject 0
                pass 0 cut 60
                server kill 16
                2 edit addProject 3887773
                1 edit replaceProject 0
                pass 1
                flow
                1 edit moveSlug 1436834
                flow
                """),
        CorpusCase(
            name: "what was made and deleted before the server took it is not what a copy made of that name",
            app: "task",
            script: """
                world seed 1 devices 2 users 1 page 50
                flow
                server fail 1
                1 edit replaceProject 0
                1 clone 0
                1 edit writeTask 15422154
                0 edit writeTask 15422154
                flow
                wait 2000
                1 edit deleteTask 14519078
                """),
        CorpusCase(
            name: "what contends with a record that came back in part stands where the part cannot",
            app: "task",
            script: """
                world seed 1 devices 2 users 2 page 50
                1 edit replaceProject 1
                1 edit replaceProject 7356220
                0 edit replaceProject 0
                flow
                user 1 scope 0 none
                server restore
                0 edit moveSlug 5342078
                wait 31000
                flow
                """),
        CorpusCase(
            name: "what a server had no room for before it had is asked for once the answer has come (I12)",
            app: "order",
            script: """
                world seed 1 devices 2 users 1 page 50
                1 edit shareAtOnce 0
                0 edit addCustomer 0
                flow
                server node 0 settings 13345532
                0 edit shareAtOnce 0
                pass 0
                pass 0 old
                """),
    ]
}
